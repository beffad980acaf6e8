import type { Keys } from './effect.ts';

interface Hold {
  readers: number;
  writers: number;
  /** How many of them are long effects, which may take minutes. */
  long: number;
}

/** Which keys are held, by how many effects. */
export class KeyTable {
  readonly #holds = new Map<string, Hold>();

  areFree(keys: Keys): boolean {
    for (const key of keys.writes ?? []) if (this.#holds.has(key)) return false;
    for (const key of keys.reads ?? []) if ((this.#holds.get(key)?.writers ?? 0) > 0) return false;
    return true;
  }

  take(keys: Keys, span: 'short' | 'long'): void {
    for (const key of keys.writes ?? [])
      this.#change({ key, readers: 0, writers: 1, long: span === 'long' ? 1 : 0 });
    for (const key of keys.reads ?? [])
      this.#change({ key, readers: 1, writers: 0, long: span === 'long' ? 1 : 0 });
  }

  give(keys: Keys, span: 'short' | 'long'): void {
    for (const key of keys.writes ?? [])
      this.#change({ key, readers: 0, writers: -1, long: span === 'long' ? -1 : 0 });
    for (const key of keys.reads ?? [])
      this.#change({ key, readers: -1, writers: 0, long: span === 'long' ? -1 : 0 });
  }

  /** Whether some of the keys will stay held for long: nobody should queue behind an effect that waits for them. */
  areHeldForLong(keys: Keys): boolean {
    const held = (key: string) => (this.#holds.get(key)?.long ?? 0) > 0;
    return (keys.writes ?? []).some(held) || (keys.reads ?? []).some(held);
  }

  #change({ key, readers, writers, long }: Hold & { key: string }): void {
    const hold = this.#holds.get(key);
    if (!hold) {
      this.#holds.set(key, { readers, writers, long });
      return;
    }
    hold.readers += readers;
    hold.writers += writers;
    hold.long += long;
    if (hold.readers === 0 && hold.writers === 0) this.#holds.delete(key);
  }
}
