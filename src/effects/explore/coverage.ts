import { isGroup } from '../effect.ts';
import type { Move } from './schedule.ts';

/** Number of distinct schedules, and share of the conflicts that were seen in both orders. */
export interface Coverage {
  /** Number of equivalence classes. Schedules of one class differ only in the order of moves that do not conflict. */
  readonly classes: number;
  /** Number of pairs of successive conflicting moves of two lanes, and of those that were seen in both orders. */
  readonly pairs: { readonly seen: number; readonly inBothOrders: number };
}

/** Accesses to a key since its last write, in one trace. Hashes are sums, because the order of readers is irrelevant. */
interface KeyTouches {
  readonly hash: number;
  write: number;
  reads: number;
  writer: Mover | undefined;
  readers: Mover[];
}

/** A lane with an operation, the same in all traces. */
interface Mover {
  readonly id: number;
  readonly lane: string;
}

const inOrder = 1;
const inReverse = 2;

/** Counts the equivalence classes of traces and the pairs of conflicting moves. */
export class CoverageCounter {
  readonly #classes = new Set<number>();
  readonly #pairs = new Map<number, number>();
  readonly #movers = new Map<string, Map<string, Mover>>();
  #inBothOrders = 0;
  #moverCount = 0;

  get coverage(): Coverage {
    return {
      classes: this.#classes.size,
      pairs: { seen: this.#pairs.size, inBothOrders: this.#inBothOrders },
    };
  }

  /** Adds a trace. Returns whether its class is new. */
  see(trace: readonly Move[]): boolean {
    const before = this.#classes.size;
    this.#classes.add(this.#read(trace));
    return this.#classes.size > before;
  }

  /** Returns the hash of the trace's class: it does not depend on the order of moves that do not conflict. */
  #read(trace: readonly Move[]): number {
    const keys = new TouchedKeys();
    const lanes = new Map<string, number>();
    let low = 0;
    let high = 0;
    for (const move of trace) {
      const mover = this.#moverOf(move);
      let hash = mixed(lanes.get(move.lane) ?? 1, mover.id);
      const { reads, writes } = move.keys;
      if (reads)
        for (const key of reads)
          for (const touched of keys.met(key)) {
            // Readers do not conflict with each other.
            if (touched.writer) hash = (hash + mixed(touched.hash, touched.write)) | 0;
            this.#follows(touched.writer, mover);
          }
      if (writes)
        for (const key of writes)
          for (const touched of keys.met(key)) {
            hash = (hash + mixed(mixed(touched.hash, touched.write), touched.reads + 1)) | 0;
            this.#follows(touched.writer, mover);
            for (const reader of touched.readers) this.#follows(reader, mover);
          }
      hash = mixed(hash, 7);
      if (reads) for (const key of reads) keys.read(key, hash, mover);
      if (writes) for (const key of writes) keys.written(key, hash, mover);
      lanes.set(move.lane, hash);
      low = (low + hash) | 0;
      high = (high + mixed(hash, 13)) | 0;
    }
    return (low >>> 0) + (high & 0x1fffff) * 2 ** 32;
  }

  #moverOf({ lane, op }: Move): Mover {
    let ops = this.#movers.get(lane);
    if (!ops) {
      ops = new Map();
      this.#movers.set(lane, ops);
    }
    let mover = ops.get(op);
    if (!mover) {
      mover = { id: ++this.#moverCount, lane };
      ops.set(op, mover);
    }
    return mover;
  }

  #follows(before: Mover | undefined, after: Mover): void {
    if (!before || before.lane === after.lane) return;
    const isInOrder = before.id < after.id;
    const pair = isInOrder ? before.id * mostMovers + after.id : after.id * mostMovers + before.id;
    const known = this.#pairs.get(pair) ?? 0;
    const now = known | (isInOrder ? inOrder : inReverse);
    if (now === known) return;
    this.#pairs.set(pair, now);
    if (now === (inOrder | inReverse)) this.#inBothOrders++;
  }
}

const mostMovers = 2 ** 26;

class TouchedKeys {
  readonly #keys = new Map<string, KeyTouches>();
  #hasGroups = false;

  /** Returns the earlier accesses to keys that overlap this one. */
  met(key: string): readonly KeyTouches[] {
    if (!this.#hasGroups && !isGroup(key)) {
      const own = this.#keys.get(key);
      return own ? [own] : nothing;
    }
    const met: KeyTouches[] = [];
    for (const [other, touched] of this.#keys)
      if (
        other === key ||
        (isGroup(key) && other.startsWith(key)) ||
        (isGroup(other) && key.startsWith(other))
      )
        met.push(touched);
    return met;
  }

  read(key: string, hash: number, mover: Mover): void {
    const touched = this.#at(key);
    touched.reads = (touched.reads + mixed(hash, 3)) | 0;
    touched.readers.push(mover);
  }

  written(key: string, hash: number, mover: Mover): void {
    const touched = this.#at(key);
    touched.write = hash;
    touched.writer = mover;
    touched.reads = 0;
    touched.readers = [];
  }

  #at(key: string): KeyTouches {
    const known = this.#keys.get(key);
    if (known) return known;
    if (isGroup(key)) this.#hasGroups = true;
    const touched = { hash: hashOf(key), write: 0, reads: 0, writer: undefined, readers: [] };
    this.#keys.set(key, touched);
    return touched;
  }
}

const nothing: readonly KeyTouches[] = [];

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash;
}

/** Mixes two numbers, so that every bit of the result depends on all bits of both. */
function mixed(a: number, b: number): number {
  let hash = Math.imul(a ^ (a >>> 16), 0x85ebca6b) ^ Math.imul(b ^ (b >>> 15), 0xc2b2ae35);
  hash = Math.imul(hash ^ (hash >>> 13), 0x27d4eb2f) + 0x9e3779b1;
  return (hash ^ (hash >>> 16)) | 0;
}
