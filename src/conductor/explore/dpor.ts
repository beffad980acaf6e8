import { RepriseError } from '../../core/errors.ts';
import { HappensBefore, type Race } from './happens-before.ts';
import { Cut, type Move, type Performed, type Point, type Policy } from './move.ts';
import { whoeverHasTheBaton } from './policies.ts';
import type { Strategy } from './strategy.ts';
import { Turns } from './turns.ts';

/** A decision on the way to where the search is now. */
interface Node {
  point: Point;
  pick: string;
  /** Lanes to be tried here. */
  readonly todo: Set<string>;
  readonly done: Set<string>;
  /** Moves that need not be made now: what follows was seen where they were made before. */
  readonly asleep: Map<string, Move>;
}

export interface DporOptions {
  /** Lanes that do the same under other names: which of them is which makes no other schedule. */
  readonly alike?: readonly (readonly string[])[] | undefined;
}

/** How many moves in a row a lane makes while others could go on, unless the search wants it so: it may wait for them. */
const longestTurn = 200;

/**
 * Dynamic partial-order reduction (Flanagan and Godefroid, 2005) with sleep sets: one schedule, or a few, of each class
 * of those that differ only in the order of moves that do not conflict. Every schedule begins anew, and is led to the
 * next place at which another lane has to go first.
 */
export class Dpor implements Strategy {
  readonly #stack: Node[] = [];
  readonly #order = new HappensBefore();
  readonly #alike: readonly (readonly string[])[];
  /** Known when the first schedule is. */
  #turns = new Turns([]);
  /** How many moves of the last schedule are as in the one before. */
  #kept = 0;
  #turn = 0;
  #hasBegun = false;

  constructor({ alike = [] }: DporOptions = {}) {
    this.#alike = alike;
  }

  /** All orders have been seen. */
  get isComplete(): boolean {
    return this.#hasBegun && this.#stack.length === 0;
  }

  next(): Policy | undefined {
    if (this.isComplete) return undefined;
    this.#turn = 0;
    this.#turns.begin();
    const choose = (point: Point) => {
      const pick = this.#choose(this.#turns.at(point));
      this.#turns.made(pick, point.n);
      return pick;
    };
    return { isCalm: true, choose };
  }

  learn({ trace, left }: Performed): void {
    if (!this.#hasBegun) this.#giveTurns(trace);
    this.#hasBegun = true;
    const length = Math.min(this.#stack.length, trace.length);
    this.#order.cut(this.#kept);
    for (let n = this.#kept; n <= length; n++) {
      const moves = n < length ? this.#movesAt(n) : this.#turns.allowed(left).filter(canBeHelped);
      this.#findRaces(n, moves, n === this.#kept && n > 0);
      const node = n < length ? this.#stack[n] : undefined;
      const move = node && moveOf(node.point, node.pick);
      if (move) this.#order.add(move, trace[n]?.isExclusive);
    }
    this.#goBack();
  }

  /** The first schedule is in their order, because it gives it. */
  #giveTurns(trace: readonly Move[]): void {
    this.#turns = Turns.in(trace, this.#alike);
    this.#turns.begin();
    for (const node of this.#stack) {
      node.point = this.#turns.at(node.point);
      this.#turns.made(node.pick, node.point.n);
    }
  }

  #choose(point: Point): string {
    const known = this.#stack[point.n];
    if (known) {
      known.point = point;
      if (point.enabled.some(({ lane }) => lane === known.pick)) return known.pick;
      throw new RepriseError(
        'REPLAY_DIVERGED',
        `the same moves did not come to the same: after ${point.n} of them ${known.pick} cannot go on any more`,
        { hint: 'look for chance, clocks and files that are not behind effects' },
      );
    }
    const asleep = this.#stillAsleep(point.n - 1);
    const awake = asleep.size === 0 ? point.enabled : point.enabled.filter(({ lane }) => !asleep.has(lane));
    if (awake.length === 0) throw new Cut('seen in another order');
    const pick = this.#firstPick({ ...point, enabled: awake });
    this.#stack.push({ point, pick, todo: new Set([pick]), done: new Set(), asleep });
    return pick;
  }

  #firstPick(point: Point): string {
    const pick = whoeverHasTheBaton(point);
    this.#turn = pick === point.last ? this.#turn + 1 : 0;
    if (this.#turn < longestTurn) return pick;
    this.#turn = 0;
    return point.enabled.find(({ lane }) => lane !== pick)?.lane ?? pick;
  }

  #stillAsleep(n: number): Map<string, Move> {
    const asleep = new Map<string, Move>();
    const before = this.#stack[n];
    if (!before || before.asleep.size === 0) return asleep;
    const made = moveOf(before.point, before.pick);
    for (const [lane, move] of before.asleep)
      if (made && this.#order.areIndependent(move, made)) asleep.set(lane, move);
    return asleep;
  }

  #movesAt(n: number): readonly Move[] {
    const { point } = this.#stack[n] ?? { point: undefined };
    return point ? [...point.enabled, ...point.waiting.filter(canBeHelped)] : [];
  }

  /** What could be made at this place, and conflicts with a move before that did not have to come before. */
  #findRaces(n: number, moves: readonly Move[], isOldPlace: boolean): void {
    if (isOldPlace) return;
    const before = this.#stack[n - 1]?.point;
    for (const move of moves) {
      // Of what was there before, everything but the last move was looked at then.
      const from = !before || !isAmong(before, move) ? 0 : n - 1;
      for (const race of this.#order.racesWith(move, from))
        if (!this.#isWhatItWaitedFor(race.n, move)) this.#tryBefore(race, move);
    }
    // A lane that was cancelled does not ask any more for what it could have done before.
    for (const move of before ? this.#movesAt(n - 1) : [])
      if (!moves.includes(move))
        for (const race of this.#order.racesWith(move, n - 1)) this.#tryBefore(race, move);
  }

  /** It could not be made before, and could right after: then neither could have come first. */
  #isWhatItWaitedFor(n: number, move: Move): boolean {
    const [at, next] = [this.#stack[n], this.#stack[n + 1]];
    return at?.point.waiting.includes(move) === true && next?.point.enabled.includes(move) === true;
  }

  /** Another lane is to go first there; if it is the one that cannot, whoever might help it. */
  #tryBefore({ n, first }: Race, { lane: wanted }: Move): void {
    const node = this.#stack[n];
    if (!node) return;
    const enabled = node.point.enabled.map(({ lane }) => lane);
    const candidates = first.filter(lane => enabled.includes(lane));
    const isHelpless = first.includes(wanted) && !candidates.includes(wanted);
    if (isHelpless || candidates.length === 0) for (const lane of enabled) node.todo.add(lane);
    else if (!candidates.some(lane => node.todo.has(lane))) node.todo.add(candidates.at(-1) ?? wanted);
  }

  /** To the last place at which something is left to be tried. */
  #goBack(): void {
    for (;;) {
      const node = this.#stack.at(-1);
      if (!node) return;
      node.done.add(node.pick);
      const move = moveOf(node.point, node.pick);
      if (move) node.asleep.set(node.pick, move);
      const next = [...node.todo].find(lane => !node.done.has(lane) && !node.asleep.has(lane));
      if (next !== undefined) {
        node.pick = next;
        this.#kept = this.#stack.length - 1;
        return;
      }
      this.#stack.pop();
    }
  }
}

/** Whoever waits for the time or the outside is not let through by other lanes, in whatever order they go on. */
const canBeHelped = ({ isUpToOutside }: Move): boolean => !isUpToOutside;

const moveOf = ({ enabled }: Point, lane: string): Move | undefined =>
  enabled.find(move => move.lane === lane);

const isAmong = ({ enabled, waiting }: Point, move: Move): boolean =>
  enabled.includes(move) || waiting.includes(move);
