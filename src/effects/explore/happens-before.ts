import { conflicts, type Keys } from '../effect.ts';
import { clockLane, type Move } from './schedule.ts';

const separator = '\n';

/** Keys as one text: the same for the same keys in the same order. */
const keysText = ({ reads, writes }: Keys): string =>
  `${writes === undefined ? '' : writes.join(separator)}${separator}${separator}${reads === undefined ? '' : reads.join(separator)}`;

const touchesNothing = 0;

/** Which keys conflict, asked once for each two of them: the same few come again and again. */
class Dependence {
  readonly #ids = new Map<string, number>([[keysText({}), touchesNothing]]);
  readonly #keys: Keys[] = [{}];
  readonly #known = new Map<number, boolean>();

  /** A number for what the move touches. */
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

/** For each lane by its number, the place of its last move that came before; -1 or nothing: none did. */
type VectorClock = readonly number[];

interface Event {
  readonly lane: number;
  readonly keys: number;
  readonly move: Move;
  readonly clock: VectorClock;
  readonly isExclusive: boolean;
}

const beginning: VectorClock = [];

/** A move that was made, and another that could have been made before it. */
export interface Race {
  /** The place of the one that was made. */
  readonly n: number;
  /** Lanes one of which has to go on there for the other one to come first. */
  readonly first: readonly string[];
}

/**
 * Which moves of a trace had to come before which. Between two ticks of the clock, that is what the same lane did, what
 * made a move possible, and what it conflicts with; and nobody is left who could have gone before a tick.
 */
export class HappensBefore {
  readonly #dependence = new Dependence();
  readonly #lanes = new Map<string, number>();
  readonly #events: Event[] = [];
  /** The last move of each lane. */
  #lasts: number[] = [];
  #lastTick = -1;

  get length(): number {
    return this.#events.length;
  }

  /** Forgets all but the first moves. */
  cut(length: number): void {
    this.#events.length = Math.min(length, this.#events.length);
    this.#lasts = [];
    this.#lastTick = -1;
    for (const [n, { lane, move }] of this.#events.entries()) {
      this.#lasts[lane] = n;
      if (move.lane === clockLane) this.#lastTick = n;
    }
  }

  /** `isExclusive`: known only after it was made. */
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

  /** What comes before a move that its lane could make now, whatever it touches. */
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
   * Moves that conflict with one that could be made now, and that nothing else puts before it, last first; of those at
   * or after a place.
   */
  racesWith(move: Move, from: number): readonly Race[] {
    const keys = this.#dependence.idOf(move);
    const races: Race[] = [];
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

  /** Whether somebody had done there what only one can do at a time, and had not yet undone it. */
  #isKeptOut(n: number, { op, keys: { writes = [] } }: Move): boolean {
    const touched = { writes };
    for (let at = n - 1; at >= 0; at--) {
      const event = this.#events[at];
      if (!event || !conflicts(touched, { writes: event.move.keys.writes ?? [] })) continue;
      return event.isExclusive && event.move.op === op && areSame(event.move.keys.writes ?? [], writes);
    }
    return false;
  }

  /** Lanes that could go first if the move at a place were made after another one that could be made now. */
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

/** Whether the move at this place came before one that has these before it. */
const isBefore = ({ lane }: Event, n: number, clock: VectorClock): boolean => (clock[lane] ?? -1) >= n;

/** As far as they themselves tell. */
function couldComeAfter(made: Move, move: Move): boolean {
  if (made.lane === move.lane || made.lane === clockLane || move.lane === clockLane) return false;
  // What conflicts with the end of something had to wait for it; but to be cancelled nobody has to wait.
  return !made.isEnd || move.op === 'lane.cancel';
}

function merge(into: number[], from: VectorClock): void {
  for (let lane = 0; lane < from.length; lane++) {
    const at = from[lane] ?? -1;
    if (at > (into[lane] ?? -1)) into[lane] = at;
  }
}
