import { conflicts, isGroup, type Keys } from './effect.ts';
import type { LaneEntry } from './lane.ts';

interface KeyHold {
  readers: number;
  writers: number;
  /** Number of holders that are long effects, which may take minutes. */
  long: number;
}

const isHeld = (): boolean => true;
const isWritten = ({ writers }: KeyHold): boolean => writers > 0;
const isHeldForLong = ({ long }: KeyHold): boolean => long > 0;

/** Counts the effects that hold each key. */
export class KeyTable {
  readonly #holds = new Map<string, KeyHold>();
  /** Held keys that are prefixes. While there are none, a plain key overlaps only itself. */
  readonly #groups = new Set<string>();

  areFree(keys: Keys): boolean {
    if (this.#holds.size === 0) return true;
    for (const key of keys.writes ?? []) if (this.#overlaps(key, isHeld)) return false;
    for (const key of keys.reads ?? []) if (this.#overlaps(key, isWritten)) return false;
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

  /** Whether a long effect holds one of the keys. No other effect should queue behind an effect that waits for them. */
  areHeldForLong(keys: Keys): boolean {
    for (const key of keys.writes ?? []) if (this.#overlaps(key, isHeldForLong)) return true;
    for (const key of keys.reads ?? []) if (this.#overlaps(key, isHeldForLong)) return true;
    return false;
  }

  #overlaps(key: string, counts: (hold: KeyHold) => boolean): boolean {
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

  #change({ key, readers, writers, long }: KeyHold & { key: string }): void {
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
    if (isGroup(key)) this.#groups.delete(key);
  }
}

const byArrival = (a: LaneEntry, b: LaneEntry): number => (a.parkedAt ?? 0) - (b.parkedAt ?? 0);

const none: readonly string[] = [];

const isKeyless = ({ keys }: LaneEntry): boolean => keyCount(keys) === 0;

const keyCount = ({ reads, writes }: Keys): number => (reads?.length ?? 0) + (writes?.length ?? 0);

/**
 * Effects that wait for their keys or for their condition, found by key. An effect that ends concerns only the effects that
 * share a key with it, so its cost does not depend on the number of other runs in the process.
 */
export class ParkedEntries {
  readonly #entries = new Set<LaneEntry>();
  /** One entry where there is only one, because most keys belong to a single lane and a set is slow to create. */
  readonly #byKey = new Map<string, LaneEntry | Set<LaneEntry>>();
  /** Keys in use that are prefixes. While there are none, a plain key concerns only itself. */
  readonly #groups = new Set<string>();
  /** Waits without keys: joins, which end when a lane ends. */
  readonly #keyless = new Set<LaneEntry>();
  #arrivals = 0;

  get size(): number {
    return this.#entries.size;
  }

  [Symbol.iterator](): Iterator<LaneEntry> {
    return this.#entries.values();
  }

  has(entry: LaneEntry): boolean {
    return entry.parkedAt !== undefined;
  }

  add(entry: LaneEntry): void {
    if (entry.parkedAt !== undefined) return;
    entry.parkedAt = this.#arrivals++;
    this.#entries.add(entry);
    if (isKeyless(entry)) this.#keyless.add(entry);
    for (const key of entry.keys.writes ?? []) this.#index(key, entry);
    for (const key of entry.keys.reads ?? []) this.#index(key, entry);
  }

  /** Returns whether the entry was parked. */
  delete(entry: LaneEntry): boolean {
    if (entry.parkedAt === undefined) return false;
    entry.parkedAt = undefined;
    this.#entries.delete(entry);
    if (isKeyless(entry)) this.#keyless.delete(entry);
    for (const key of entry.keys.writes ?? []) this.#unindex(key, entry);
    for (const key of entry.keys.reads ?? []) this.#unindex(key, entry);
    return true;
  }

  /** Whether an entry that was parked earlier conflicts with this one and passes the test. */
  hasEarlier(entry: LaneEntry, test: (earlier: LaneEntry) => boolean): boolean {
    const { keys } = entry;
    const before = entry.parkedAt ?? this.#arrivals;
    const isInTheWay = (other: LaneEntry) =>
      other.parkedAt !== undefined && other.parkedAt < before && conflicts(other.keys, keys) && test(other);
    for (const key of keys.writes ?? none)
      if (this.#isUsed(key) && this.#someAt(key, isInTheWay)) return true;
    for (const key of keys.reads ?? none) if (this.#isUsed(key) && this.#someAt(key, isInTheWay)) return true;
    return false;
  }

  /**
   * Adds the entries that a change at the keys concerns, including those queued behind them at other keys: an entry that
   * cannot start any more, or that may wait long, no longer blocks the entries behind it.
   */
  concernedBy(keys: Keys, concerned: Set<LaneEntry>): void {
    for (const key of keys.writes ?? none) if (this.#isUsed(key)) this.#concernedAt(key, concerned);
    for (const key of keys.reads ?? none) if (this.#isUsed(key)) this.#concernedAt(key, concerned);
  }

  #concernedAt(key: string, concerned: Set<LaneEntry>): void {
    this.#someAt(key, entry => {
      if (concerned.has(entry)) return false;
      concerned.add(entry);
      if (keyCount(entry.keys) > 1) this.concernedBy(entry.keys, concerned);
      return false;
    });
  }

  /** Whether an entry may be parked at the key. Fast, because it is asked for every key of every effect. */
  #isUsed(key: string): boolean {
    return this.#byKey.has(key) || this.#groups.size > 0 || isGroup(key);
  }

  get keyless(): Iterable<LaneEntry> {
    return this.#keyless;
  }

  #someAt(key: string, test: (entry: LaneEntry) => boolean): boolean {
    const own = this.#byKey.get(key);
    if (own && some(own, test)) return true;
    if (isGroup(key)) {
      for (const [other, entries] of this.#byKey)
        if (other !== key && other.startsWith(key) && some(entries, test)) return true;
    }
    for (const group of this.#groups) {
      if (group === key || !key.startsWith(group)) continue;
      const entries = this.#byKey.get(group);
      if (entries && some(entries, test)) return true;
    }
    return false;
  }

  #index(key: string, entry: LaneEntry): void {
    const parked = this.#byKey.get(key);
    if (parked instanceof Set) parked.add(entry);
    else if (parked) this.#byKey.set(key, new Set([parked, entry]));
    else {
      this.#byKey.set(key, entry);
      if (isGroup(key)) this.#groups.add(key);
    }
  }

  #unindex(key: string, entry: LaneEntry): void {
    const parked = this.#byKey.get(key);
    if (parked instanceof Set) {
      parked.delete(entry);
      if (parked.size > 0) return;
    } else if (parked !== entry) return;
    this.#byKey.delete(key);
    if (isGroup(key)) this.#groups.delete(key);
  }
}

function some(parked: LaneEntry | Set<LaneEntry>, test: (entry: LaneEntry) => boolean): boolean {
  if (!(parked instanceof Set)) return test(parked);
  for (const entry of parked) if (test(entry)) return true;
  return false;
}

/** Entries in the order in which they were parked. */
export function inOrderOfArrival(entries: ReadonlySet<LaneEntry>): readonly LaneEntry[] {
  const ordered = [...entries];
  return ordered.length > 1 ? ordered.sort(byArrival) : ordered;
}
