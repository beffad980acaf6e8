import { isGroup, type Keys } from '../effects/effect.ts';

interface Hold {
  readers: number;
  writers: number;
  /** How many of them are long effects, which may take minutes. */
  long: number;
}

const isHeld = (): boolean => true;
const isWritten = ({ writers }: Hold): boolean => writers > 0;
const isHeldForLong = ({ long }: Hold): boolean => long > 0;

/** Which keys are held, by how many effects. */
export class KeyTable {
  readonly #holds = new Map<string, Hold>();
  /** Those of the keys held that stand for many: as long as there are none, a plain key meets only itself. */
  readonly #groups = new Set<string>();

  areFree(keys: Keys): boolean {
    if (this.#holds.size === 0) return true;
    for (const key of keys.writes ?? []) if (this.#meets(key, isHeld)) return false;
    for (const key of keys.reads ?? []) if (this.#meets(key, isWritten)) return false;
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
    for (const key of keys.writes ?? []) if (this.#meets(key, isHeldForLong)) return true;
    for (const key of keys.reads ?? []) if (this.#meets(key, isHeldForLong)) return true;
    return false;
  }

  #meets(key: string, counts: (hold: Hold) => boolean): boolean {
    const own = this.#holds.get(key);
    if (own && counts(own)) return true;
    if (isGroup(key)) {
      for (const [held, hold] of this.#holds) if (held.startsWith(key) && counts(hold)) return true;
    }
    for (const group of this.#groups) {
      const hold = key.startsWith(group) ? this.#holds.get(group) : undefined;
      if (hold && counts(hold)) return true;
    }
    return false;
  }

  #change({ key, readers, writers, long }: Hold & { key: string }): void {
    const hold = this.#holds.get(key);
    if (!hold) {
      this.#holds.set(key, { readers, writers, long });
      if (isGroup(key)) this.#groups.add(key);
      return;
    }
    hold.readers += readers;
    hold.writers += writers;
    hold.long += long;
    if (hold.readers > 0 || hold.writers > 0) return;
    this.#holds.delete(key);
    this.#groups.delete(key);
  }
}
