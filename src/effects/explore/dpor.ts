import { RepriseError } from '../../core/errors.ts';
import { HappensBefore, type Race } from './happens-before.ts';
import { whoeverHasTheBaton } from './policies.ts';
import { Cut, type Move, type Performed, type Point, type Policy, type Strategy } from './schedule.ts';
import { Turns } from './symmetry.ts';

/** A decision that was come to. */
interface Node {
  /** The decision before it, and who went on there. */
  readonly from: { readonly node: Node; readonly lane: string } | undefined;
  readonly n: number;
  enabled: readonly Move[];
  /** Lanes to be tried here. */
  readonly todo: Set<string>;
  readonly begun: Set<string>;
  /** Moves that need not be made here any more: what follows is seen where they are made. */
  readonly asleep: Map<string, Move>;
}

/** One schedule, as far as it has come. */
interface Way {
  readonly nodes: Node[];
  readonly picks: string[];
  readonly points: Point[];
  /** How many of its decisions were taken when it began. */
  readonly known: number;
  /** What slept at its last decision before it was taken. Other ways may begin there meanwhile. */
  asleep: ReadonlyMap<string, Move>;
  turns: Turns;
  /** Who goes on where nothing is known yet; whoever has the baton unless it is said. */
  readonly pick?: Policy['choose'] | undefined;
  /** How many moves in a row its lane has made. */
  turn: number;
}

export interface DporOptions {
  /** Lanes that do the same under other names: which of them is which makes no other schedule. */
  readonly alike?: readonly (readonly string[])[] | undefined;
  /** What the first schedule is; nobody is interrupted for long unless it is said. */
  readonly first?: Policy | undefined;
}

/** How many moves in a row a lane makes while others could go on, unless the search wants it so: it may wait for them. */
const longestTurn = 200;

/**
 * Dynamic partial-order reduction (Flanagan and Godefroid, 2005) with sleep sets: one schedule, or a few, of each class
 * of those that differ only in the order of moves that do not conflict. Every schedule begins anew, and is led to a
 * place at which another lane has to go first: the deepest that there is.
 *
 * Several can be under way at once. What sleeps in one is what was begun before it, whether or not it has ended, so that
 * no two of them leave something to each other.
 */
export class Dpor implements Strategy {
  readonly #underWay = new Map<Policy, Way>();
  /** Decisions at which something is left to be tried. */
  readonly #waiting = new Set<Node>();
  readonly #order = new HappensBefore();
  readonly #alike: readonly (readonly string[])[];
  readonly #first: Policy | undefined;
  /** Known when the first schedule is. */
  #turns: Turns | undefined;
  /** The one that was learned last, with which the order is that of its moves. */
  #last: Way | undefined;
  #hasBegun = false;

  constructor({ alike = [], first }: DporOptions = {}) {
    this.#alike = alike;
    this.#first = first;
  }

  /** All orders have been seen. */
  get isComplete(): boolean {
    return this.#last !== undefined && this.#waiting.size === 0 && this.#underWay.size === 0;
  }

  next(): Policy | undefined {
    const way = this.#hasBegun ? this.#nextWay() : firstWay(this.#first);
    if (!way) return undefined;
    this.#hasBegun = true;
    const choose = (point: Point) => {
      const pick = this.#choose(way, way.turns.at(point));
      way.turns.made(pick, point.n);
      return pick;
    };
    const policy = { isCalm: true, choose };
    this.#underWay.set(policy, way);
    return policy;
  }

  learn({ trace, left }: Performed, policy: Policy): void {
    const way = this.#underWay.get(policy);
    if (!way) throw new RepriseError('INTERNAL', 'a schedule was learned that was not given');
    this.#underWay.delete(policy);
    this.#turns ??= this.#giveTurns(way, trace);
    const kept = this.#sharedWithLast(way);
    const length = Math.min(way.nodes.length, trace.length);
    this.#order.cut(kept);
    for (let n = kept; n <= length; n++) {
      const moves = n < length ? movesAt(way, n) : way.turns.allowed(left).filter(canBeHelped);
      this.#findRaces(way, n, { moves, isOldPlace: n === kept && n > 0 });
      const move = n < length ? madeAt(way, n) : undefined;
      if (move) this.#order.add(move, trace[n]?.isExclusive);
    }
    this.#last = way;
  }

  /** To the deepest place at which something is left to be tried. */
  #nextWay(): Way | undefined {
    let node: Node | undefined;
    for (const each of this.#waiting) if (!node || each.n >= node.n) node = each;
    const lane = node && untried(node);
    if (!node || lane === undefined) return undefined;
    const asleep = new Map(node.asleep);
    begin(node, lane);
    if (untried(node) === undefined) this.#waiting.delete(node);
    const nodes: Node[] = [];
    const picks: string[] = [];
    for (let at: Node['from'] = { node, lane }; at; at = at.node.from) {
      nodes.unshift(at.node);
      picks.unshift(at.lane);
    }
    const turns = this.#turns?.again() ?? new Turns([]);
    return { nodes, picks, points: [], known: nodes.length, asleep, turns, turn: 0 };
  }

  /** The first schedule is in their order, because it gives it. */
  #giveTurns(way: Way, trace: readonly Move[]): Turns {
    way.turns = Turns.in(trace, this.#alike);
    for (const [n, given] of way.points.entries()) {
      const [node, pick] = [way.nodes[n], way.picks[n]];
      const point = way.turns.at(given);
      way.points[n] = point;
      if (node) node.enabled = point.enabled;
      if (pick !== undefined) way.turns.made(pick, n);
    }
    return way.turns;
  }

  #choose(way: Way, point: Point): string {
    way.points[point.n] = point;
    const known = way.picks[point.n];
    if (known !== undefined && point.n < way.known) {
      if (point.enabled.some(({ lane }) => lane === known)) return known;
      throw new RepriseError(
        'REPLAY_DIVERGED',
        `the same moves did not come to the same: after ${point.n} of them ${known} cannot go on any more`,
        { hint: 'look for chance, clocks and files that are not behind effects' },
      );
    }
    const asleep = this.#stillAsleep(way, point.n - 1);
    const awake = asleep.size === 0 ? point.enabled : point.enabled.filter(({ lane }) => !asleep.has(lane));
    if (awake.length === 0) throw new Cut('seen in another order');
    const pick = pickAmong(way, { ...point, enabled: awake });
    way.asleep = asleep;
    const before = way.nodes.at(-1);
    const node: Node = {
      from: before && { node: before, lane: way.picks.at(-1) ?? '' },
      n: point.n,
      enabled: point.enabled,
      todo: new Set([pick]),
      begun: new Set(),
      asleep: new Map(asleep),
    };
    begin(node, pick);
    way.nodes.push(node);
    way.picks.push(pick);
    return pick;
  }

  #stillAsleep(way: Way, n: number): Map<string, Move> {
    const asleep = new Map<string, Move>();
    if (way.asleep.size === 0) return asleep;
    const made = madeAt(way, n);
    for (const [lane, move] of way.asleep)
      if (made && this.#order.areIndependent(move, made)) asleep.set(lane, move);
    return asleep;
  }

  /** How many of its first moves are those of the last. */
  #sharedWithLast({ nodes, picks }: Way): number {
    const last = this.#last;
    if (!last) return 0;
    const differs = nodes.findIndex((node, n) => last.nodes[n] !== node || last.picks[n] !== picks[n]);
    return differs < 0 ? nodes.length : differs;
  }

  /** What could be made at this place, and conflicts with a move before that did not have to come before. */
  #findRaces(way: Way, n: number, { moves, isOldPlace }: Place): void {
    if (isOldPlace) return;
    const before = way.points[n - 1];
    for (const move of moves) {
      // Of what was there before, everything but the last move was looked at then.
      const from = !before || !isAmong(before, move) ? 0 : n - 1;
      for (const race of this.#order.racesWith(move, from))
        if (!isWhatItWaitedFor(way, race.n, move)) this.#tryBefore(way, race, move);
    }
    // A lane that was cancelled does not ask any more for what it could have done before.
    for (const move of before ? movesAt(way, n - 1) : [])
      if (!moves.includes(move))
        for (const race of this.#order.racesWith(move, n - 1)) this.#tryBefore(way, race, move);
  }

  /** Another lane is to go first there; if it is the one that cannot, whoever might help it. */
  #tryBefore(way: Way, { n, first }: Race, { lane: wanted }: Move): void {
    const node = way.nodes[n];
    if (!node) return;
    const enabled = node.enabled.map(({ lane }) => lane);
    const candidates = first.filter(lane => enabled.includes(lane));
    const isHelpless = first.includes(wanted) && !candidates.includes(wanted);
    if (isHelpless || candidates.length === 0) for (const lane of enabled) node.todo.add(lane);
    else if (!candidates.some(lane => node.todo.has(lane))) node.todo.add(candidates.at(-1) ?? wanted);
    if (untried(node) !== undefined) this.#waiting.add(node);
  }
}

interface Place {
  readonly moves: readonly Move[];
  /** The way before came to it as well. */
  readonly isOldPlace: boolean;
}

const firstWay = (first: Policy | undefined): Way => ({
  nodes: [],
  picks: [],
  points: [],
  known: 0,
  asleep: new Map(),
  turns: new Turns([]),
  pick: first?.choose,
  turn: 0,
});

const untried = ({ todo, begun, asleep }: Node): string | undefined =>
  [...todo].find(lane => !begun.has(lane) && !asleep.has(lane));

/** From now on, the same move need not be made after others here. */
function begin({ begun, asleep, enabled }: Node, lane: string): void {
  begun.add(lane);
  const move = enabled.find(each => each.lane === lane);
  if (move) asleep.set(lane, move);
}

function pickAmong(way: Way, point: Point): string {
  if (way.pick) return way.pick(point);
  const pick = whoeverHasTheBaton(point);
  way.turn = pick === point.last ? way.turn + 1 : 0;
  if (way.turn < longestTurn) return pick;
  way.turn = 0;
  return point.enabled.find(({ lane }) => lane !== pick)?.lane ?? pick;
}

const madeAt = ({ points, picks }: Way, n: number): Move | undefined =>
  points[n]?.enabled.find(({ lane }) => lane === picks[n]);

function movesAt({ points }: Way, n: number): readonly Move[] {
  const point = points[n];
  return point ? [...point.enabled, ...point.waiting.filter(canBeHelped)] : [];
}

/** It could not be made before, and could right after: then neither could have come first. */
const isWhatItWaitedFor = ({ points }: Way, n: number, move: Move): boolean =>
  points[n]?.waiting.includes(move) === true && points[n + 1]?.enabled.includes(move) === true;

/** Whoever waits for the time or the outside is not let through by other lanes, in whatever order they go on. */
const canBeHelped = ({ isUpToOutside }: Move): boolean => !isUpToOutside;

const isAmong = ({ enabled, waiting }: Point, move: Move): boolean =>
  enabled.includes(move) || waiting.includes(move);
