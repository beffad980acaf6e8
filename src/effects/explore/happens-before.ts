import { conflicts, type Keys } from '../effect.ts';
import { clockLane, type Move } from './schedule.ts';

const separator = '\n';

/** Returns one string for the keys, equal for equal keys in the same order. */
const keysText = ({ reads, writes }: Keys): string =>
  `${writes === undefined ? '' : writes.join(separator)}${separator}${separator}${reads === undefined ? '' : reads.join(separator)}`;

const touchesNothing = 0;

/** Cache of conflicts between keys: the same few combinations occur again and again. */
class Dependence {
  readonly #ids = new Map<string, number>([[keysText({}), touchesNothing]]);
  readonly #keys: Keys[] = [{}];
  readonly #known = new Map<number, boolean>();

  /** Returns a number for the keys of the move. */
  idOf({ keys }: Move): number {
    const text = keysText(keys);
    const known = this.#ids.get(text);
    if (known !== undefined) return known;
    const id = this.#keys.length;
    this.#ids.set(text, id);
    this.#keys.push(keys);
    return id;
  }

  conflict(a: number, b: number): boolean {
    if (a === touchesNothing || b === touchesNothing) return false;
    const pair = a < b ? a * mostKeys + b : b * mostKeys + a;
    const known = this.#known.get(pair);
    if (known !== undefined) return known;
    const answer = conflicts(this.#keys[a] ?? {}, this.#keys[b] ?? {});
    this.#known.set(pair, answer);
    return answer;
  }
}

const mostKeys = 2 ** 26;

/** Position of the last preceding move of each lane, by number of the lane; -1 or undefined if there is none. */
type VectorClock = readonly number[];

interface Event {
  readonly lane: number;
  readonly keys: number;
  readonly move: Move;
  readonly clock: VectorClock;
  readonly isExclusive: boolean;
}

const beginning: VectorClock = [];

/** A race of a move in the trace with a later one that could have come first. */
export interface BacktrackPoint {
  /** Position of the move in the trace. */
  readonly n: number;
  /** Lanes of which one has to continue at that position for the other move to come first. */
  readonly first: readonly string[];
}

/**
 * Happens-before relation of a trace. Between two ticks of the clock, a move comes after the earlier moves of its lane,
 * the moves that made it possible, and the moves that it conflicts with. All moves before a tick precede it.
 */
export class HappensBefore {
  readonly #dependence = new Dependence();
  readonly #lanes = new Map<string, number>();
  readonly #events: Event[] = [];
  /** Position of the last move of each lane. */
  #lasts: number[] = [];
  #lastTick = -1;

  get length(): number {
    return this.#events.length;
  }

  /** Drops all moves after the first `length`. */
  cut(length: number): void {
    this.#events.length = Math.min(length, this.#events.length);
    this.#lasts = [];
    this.#lastTick = -1;
    for (const [n, { lane, move }] of this.#events.entries()) {
      this.#lasts[lane] = n;
      if (move.lane === clockLane) this.#lastTick = n;
    }
  }

  /** Appends a move. `isExclusive` is a parameter because it is known only after the move was made. */
  add(move: Move, isExclusive = false): void {
    const lane = this.#laneOf(move.lane);
    const keys = this.#dependence.idOf(move);
    const n = this.#events.length;
    const clock = [...this.before(move)];
    const isTick = move.lane === clockLane;
    for (let i = n - 1; i >= 0; i--) {
      const earlier = this.#events[i];
      if (!earlier || (clock[earlier.lane] ?? -1) >= i) continue;
      if (isTick || this.#dependence.conflict(earlier.keys, keys)) merge(clock, earlier.clock);
    }
    clock[lane] = n;
    this.#events.push({ lane, keys, move, clock, isExclusive });
    this.#lasts[lane] = n;
    if (isTick) this.#lastTick = n;
  }

  /** Returns the clock of a move that its lane could make now, without conflicts. */
  before(move: Move): VectorClock {
    const last = this.#events[this.#lasts[this.#laneOf(move.lane)] ?? -1]?.clock ?? beginning;
    const tick = this.#events[this.#lastTick]?.clock;
    if (!move.after && !tick) return last;
    const clock = [...last];
    if (tick) merge(clock, tick);
    for (const n of move.after ?? []) merge(clock, this.#events[n]?.clock ?? beginning);
    return clock;
  }

  /**
   * Returns the races of a move that could be made now: moves from position `from` on that conflict with it and are not
   * ordered before it by anything else, last first.
   */
  racesWith(move: Move, from: number): readonly BacktrackPoint[] {
    const keys = this.#dependence.idOf(move);
    const races: BacktrackPoint[] = [];
    let clock: number[] | undefined;
    for (let n = this.#events.length - 1; n >= from; n--) {
      const event = this.#events[n];
      if (!event || !this.#dependence.conflict(event.keys, keys)) continue;
      clock ??= [...this.before(move)];
      if (isBefore(event, n, clock) || !couldComeAfter(event.move, move)) continue;
      if (event.move.op !== 'lane.cancel' && this.#isKeptOut(n, move)) continue;
      races.push({ n, first: this.#firstWithout(n, move, clock) });
      merge(clock, event.clock);
    }
    return races;
  }

  /** Whether another lane held the lock at that position, so that the move could not have been made there. */
  #isKeptOut(n: number, { op, keys: { writes = [] } }: Move): boolean {
    const touched = { writes };
    for (let at = n - 1; at >= 0; at--) {
      const event = this.#events[at];
      if (!event || !conflicts(touched, { writes: event.move.keys.writes ?? [] })) continue;
      return event.isExclusive && event.move.op === op && areSame(event.move.keys.writes ?? [], writes);
    }
    return false;
  }

  /** Returns the lanes that could go first if the move at position `n` came after the given one. */
  #firstWithout(n: number, move: Move, clock: VectorClock): readonly string[] {
    const left = this.#events[n];
    const others: number[] = [];
    const first: string[] = [];
    const comesFirst = (of: VectorClock) =>
      !others.some(other => {
        const event = this.#events[other];
        return event !== undefined && isBefore(event, other, of);
      });
    for (let at = n + 1; at < this.#events.length; at++) {
      const event = this.#events[at];
      if (!event || !left || isBefore(left, n, event.clock)) continue;
      if (comesFirst(event.clock)) first.push(event.move.lane);
      others.push(at);
    }
    if (comesFirst(clock)) first.push(move.lane);
    return first;
  }

  areIndependent(a: Move, b: Move): boolean {
    if (a.lane === b.lane || a.lane === clockLane || b.lane === clockLane) return false;
    return !this.#dependence.conflict(this.#dependence.idOf(a), this.#dependence.idOf(b));
  }

  #laneOf(name: string): number {
    const known = this.#lanes.get(name);
    if (known !== undefined) return known;
    this.#lanes.set(name, this.#lanes.size);
    return this.#lanes.size - 1;
  }
}

const areSame = (a: readonly string[], b: readonly string[]): boolean =>
  a.length > 0 && a.length === b.length && a.every((key, at) => key === b[at]);

/** Whether the event at position `n` happened before a move with that clock. */
const isBefore = ({ lane }: Event, n: number, clock: VectorClock): boolean => (clock[lane] ?? -1) >= n;

/** Whether the two moves could be swapped, considering only these two. */
function couldComeAfter(made: Move, move: Move): boolean {
  if (made.lane === move.lane || made.lane === clockLane || move.lane === clockLane) return false;
  // A move that conflicts with the end of a long effect had to wait for it. Only a cancel does not wait.
  return !made.isEnd || move.op === 'lane.cancel';
}

function merge(into: number[], from: VectorClock): void {
  for (let lane = 0; lane < from.length; lane++) {
    const at = from[lane] ?? -1;
    if (at > (into[lane] ?? -1)) into[lane] = at;
  }
}
