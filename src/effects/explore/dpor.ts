import { RepriseError } from '../../core/index.ts';
import { type BacktrackPoint, HappensBefore } from './happens-before.ts';
import { continueLast } from './policies.ts';
import {
  type Move,
  type Performed,
  type Point,
  type Policy,
  ScheduleCut,
  type Strategy,
} from './schedule.ts';
import { SymmetryOrder } from './symmetry.ts';

/** A decision in the search tree. */
interface Node {
  /** The previous decision, and the lane chosen there. */
  readonly from: { readonly node: Node; readonly lane: string } | undefined;
  readonly n: number;
  enabled: readonly Move[];
  /** Lanes to try here (the backtrack set). */
  readonly todo: Set<string>;
  readonly begun: Set<string>;
  /** Moves that need not be tried here any more, because another branch covers them (the sleep set). */
  readonly asleep: Map<string, Move>;
}

/** One schedule so far. */
interface PartialSchedule {
  readonly nodes: Node[];
  readonly picks: string[];
  readonly points: Point[];
  /** Number of decisions that were prescribed at its start. */
  readonly known: number;
  /** Sleep set at its last decision, copied before the decision, because other schedules may branch there meanwhile. */
  asleep: ReadonlyMap<string, Move>;
  turns: SymmetryOrder;
  /** Chooses a lane at decisions that are not prescribed. Defaults to no preemption. */
  readonly pick?: Policy['choose'] | undefined;
  /** Number of moves that the current lane has made in a row. */
  turn: number;
}

export interface DporOptions {
  /** Groups of symmetric lanes. Schedules that differ only by a permutation of these lanes are equivalent. */
  readonly symmetric?: readonly (readonly string[])[] | undefined;
  /** Policy of the first schedule. Defaults to one without preemption, except for very long turns. */
  readonly first?: Policy | undefined;
}

/** Number of moves in a row after which another enabled lane continues: the lane may be polling for the others. */
const longestTurn = 200;

/**
 * Dynamic partial-order reduction (Flanagan and Godefroid, 2005) with sleep sets: tries one schedule, or a few, of each
 * equivalence class. Schedules of one class differ only in the order of moves that do not conflict. Every schedule
 * starts from the beginning and is led to the deepest decision at which another lane has to go first.
 *
 * Several schedules can run in parallel. The sleep set of one contains all moves started before it, finished or not, so
 * that two schedules never leave the same branch to each other.
 */
export class Dpor implements Strategy {
  readonly #running = new Map<Policy, PartialSchedule>();
  /** Decisions with an untried lane. */
  readonly #waiting = new Set<Node>();
  readonly #order = new HappensBefore();
  readonly #symmetric: readonly (readonly string[])[];
  readonly #first: Policy | undefined;
  /** Order of symmetric lanes, taken from the first schedule. */
  #turns: SymmetryOrder | undefined;
  /** The schedule that was learned last; `#order` contains its moves. */
  #last: PartialSchedule | undefined;
  #hasBegun = false;

  constructor({ symmetric = [], first }: DporOptions = {}) {
    this.#symmetric = symmetric;
    this.#first = first;
  }

  /** Whether all interleavings have been seen. */
  get isComplete(): boolean {
    return this.#last !== undefined && this.#waiting.size === 0 && this.#running.size === 0;
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
    this.#running.set(policy, way);
    return policy;
  }

  learn({ trace, left, verdict }: Performed, policy: Policy): void {
    const way = this.#running.get(policy);
    if (!way) throw new RepriseError('INTERNAL', 'learn() got a policy that next() did not return');
    this.#running.delete(policy);
    this.#turns ??= this.#giveTurns(way, trace);
    const kept = this.#sharedWithLast(way);
    const length = Math.min(way.nodes.length, trace.length);
    const atEnd = way.turns.allowed(left).filter(canBeHelped);
    this.#order.cut(kept);
    for (let n = kept; n < length; n++) {
      const made = madeAt(way, n);
      const waitsOn = n + 1 < length ? (way.points[n + 1]?.waiting ?? []) : atEnd;
      const isLast = (move: Move) =>
        move === made || (way.points[n]?.waiting.includes(move) === true && !waitsOn.includes(move));
      this.#findRaces(way, n, { moves: movesAt(way, n), isRevisited: n === kept && n > 0, isLast });
      if (made) this.#order.add(made, trace[n]?.isExclusive);
    }
    // Every continuation of a schedule that was cut is equivalent to one of another schedule, which compares its moves.
    const isLast = () => verdict.kind !== 'cut';
    this.#findRaces(way, length, { moves: atEnd, isRevisited: length === kept && length > 0, isLast });
    this.#last = way;
  }

  /** Returns a schedule that leads to the deepest decision with an untried lane. */
  #nextWay(): PartialSchedule | undefined {
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
    const turns = this.#turns?.again() ?? new SymmetryOrder([]);
    return { nodes, picks, points: [], known: nodes.length, asleep, turns, turn: 0 };
  }

  /** Takes the order of symmetric lanes from the first schedule, and applies it to that schedule. */
  #giveTurns(way: PartialSchedule, trace: readonly Move[]): SymmetryOrder {
    way.turns = SymmetryOrder.in(trace, this.#symmetric);
    for (const [n, given] of way.points.entries()) {
      const [node, pick] = [way.nodes[n], way.picks[n]];
      const point = way.turns.at(given);
      way.points[n] = point;
      if (node) node.enabled = point.enabled;
      if (pick !== undefined) way.turns.made(pick, n);
    }
    return way.turns;
  }

  #choose(way: PartialSchedule, point: Point): string {
    way.points[point.n] = point;
    const known = way.picks[point.n];
    if (known !== undefined && point.n < way.known) {
      if (point.enabled.some(({ lane }) => lane === known)) return known;
      throw new RepriseError(
        'REPLAY_DIVERGED',
        `the program is not deterministic: after the same ${point.n} moves, ${known} can no longer continue`,
        { hint: 'look for random numbers, clocks and files that are used without an effect' },
      );
    }
    const asleep = this.#stillAsleep(way, point.n - 1);
    const awake = asleep.size === 0 ? point.enabled : point.enabled.filter(({ lane }) => !asleep.has(lane));
    if (awake.length === 0) throw new ScheduleCut('an equivalent schedule has been seen');
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

  #stillAsleep(way: PartialSchedule, n: number): Map<string, Move> {
    const asleep = new Map<string, Move>();
    if (way.asleep.size === 0) return asleep;
    const made = madeAt(way, n);
    for (const [lane, move] of way.asleep)
      if (made && this.#order.areIndependent(move, made)) asleep.set(lane, move);
    return asleep;
  }

  /** Returns the length of the common prefix with the last schedule. */
  #sharedWithLast({ nodes, picks }: PartialSchedule): number {
    const last = this.#last;
    if (!last) return 0;
    const differs = nodes.findIndex((node, n) => last.nodes[n] !== node || last.picks[n] !== picks[n]);
    return differs < 0 ? nodes.length : differs;
  }

  /**
   * Finds moves that were possible at this point and race with an earlier move. A move is compared with a new earlier
   * move as soon as possible, and once more with all of them at its last point, because what lies between the two
   * decides which lane has to go first: the lane found before may be asleep there.
   */
  #findRaces(way: PartialSchedule, n: number, { moves, isRevisited, isLast }: DecisionPoint): void {
    const before = way.points[n - 1];
    for (const move of moves) {
      const isLastPoint = isLast(move);
      if (isRevisited && !isLastPoint) continue;
      const from = isLastPoint || !before || !isAmong(before, move) ? 0 : n - 1;
      for (const race of this.#order.racesWith(move, from))
        if (!isWhatItWaitedFor(way, race.n, move)) this.#tryBefore(way, race, move);
    }
    if (isRevisited) return;
    // A cancelled lane no longer offers the move that it could have made before.
    for (const move of before ? movesAt(way, n - 1) : [])
      if (!moves.includes(move))
        for (const race of this.#order.racesWith(move, n - 1)) this.#tryBefore(way, race, move);
  }

  /** Adds a lane to try first at the race. If that lane is blocked there, adds all lanes that might unblock it. */
  #tryBefore(way: PartialSchedule, { n, first }: BacktrackPoint, { lane: wanted }: Move): void {
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

interface DecisionPoint {
  readonly moves: readonly Move[];
  /** Whether the last schedule reached it too. */
  readonly isRevisited: boolean;
  /** Whether the move is made now, or is blocked for the last time. */
  readonly isLast: (move: Move) => boolean;
}

const firstWay = (first: Policy | undefined): PartialSchedule => ({
  nodes: [],
  picks: [],
  points: [],
  known: 0,
  asleep: new Map(),
  turns: new SymmetryOrder([]),
  pick: first?.choose,
  turn: 0,
});

const untried = ({ todo, begun, asleep }: Node): string | undefined =>
  [...todo].find(lane => !begun.has(lane) && !asleep.has(lane));

/** Marks the lane as tried, and adds its move to the sleep set. */
function begin({ begun, asleep, enabled }: Node, lane: string): void {
  begun.add(lane);
  const move = enabled.find(each => each.lane === lane);
  if (move) asleep.set(lane, move);
}

function pickAmong(way: PartialSchedule, point: Point): string {
  if (way.pick) return way.pick(point);
  const pick = continueLast(point);
  way.turn = pick === point.last ? way.turn + 1 : 0;
  if (way.turn < longestTurn) return pick;
  way.turn = 0;
  return point.enabled.find(({ lane }) => lane !== pick)?.lane ?? pick;
}

const madeAt = ({ points, picks }: PartialSchedule, n: number): Move | undefined =>
  points[n]?.enabled.find(({ lane }) => lane === picks[n]);

function movesAt({ points }: PartialSchedule, n: number): readonly Move[] {
  const point = points[n];
  return point ? [...point.enabled, ...point.waiting.filter(canBeHelped)] : [];
}

/** Whether the earlier move enabled this one: then they cannot be swapped. */
const isWhatItWaitedFor = ({ points }: PartialSchedule, n: number, move: Move): boolean =>
  points[n]?.waiting.includes(move) === true && points[n + 1]?.enabled.includes(move) === true;

/** Whether other lanes can enable the move. A wait for time or for an outside event does not depend on them. */
const canBeHelped = ({ isUpToOutside }: Move): boolean => !isUpToOutside;

const isAmong = ({ enabled, waiting }: Point, move: Move): boolean =>
  enabled.includes(move) || waiting.includes(move);
