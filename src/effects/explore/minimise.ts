import { RepriseError } from '../../core/index.ts';
import { continueLast } from './policies.ts';
import {
  clockLane,
  type Move,
  type Perform,
  type Performed,
  type Point,
  type Policy,
  switchesIn,
  withoutIdleEnd,
} from './schedule.ts';

/** A move of a schedule to follow. Without `op`, any move of the lane. */
interface FollowedMove {
  readonly lane: string;
  readonly op?: string;
}

interface FollowOptions {
  /** Same value as when the schedule was found. */
  readonly isCalm?: boolean;
}

/**
 * Returns a policy that follows the schedule exactly. With `goesOn`, lanes continue without preemption after its end.
 * Throws REPLAY_DIVERGED if the program cannot follow the schedule.
 */
export function followStrictly(
  order: readonly FollowedMove[],
  { isCalm = false, goesOn = false }: FollowOptions & { readonly goesOn?: boolean } = {},
): Policy {
  return {
    isCalm,
    choose: point => {
      const wanted = order[point.n];
      if (!wanted && goesOn) return continueLast(point);
      const move = wanted && point.enabled.find(({ lane }) => lane === wanted.lane);
      if (move && (wanted.op === undefined || wanted.op === move.op)) return move.lane;
      throw new RepriseError('REPLAY_DIVERGED', misfit(point, wanted));
    },
  };
}

function misfit({ n, enabled, waiting }: Point, wanted: FollowedMove | undefined): string {
  const possible = `possible moves: ${enabled.map(described).join(', ') || 'none'}`;
  if (!wanted) return `the schedule ends after ${n} moves, but the program continues; ${possible}`;
  const expected = `move ${n + 1} of the schedule is ${described(wanted)}`;
  const at = [...enabled, ...waiting].find(({ lane }) => lane === wanted.lane);
  if (!at) return `${expected}, but there is no such lane now; ${possible}`;
  const isWaiting = waiting.includes(at);
  return `${expected}, but ${at.lane} ${isWaiting ? 'waits' : 'is'} at ${at.op}; ${possible}`;
}

const described = ({ lane, op }: FollowedMove | Move): string => (op === undefined ? lane : `${lane} ${op}`);

/**
 * Returns a policy that follows the schedule as far as possible: moves of blocked lanes are skipped, and after its end
 * no lane is preempted. Used in the search for a smaller schedule with the same failure.
 */
export function followLeniently(
  order: readonly { readonly lane: string }[],
  { isCalm = false }: FollowOptions = {},
): Policy {
  let at = 0;
  return {
    isCalm,
    choose: point => {
      for (; at < order.length; at++) {
        const wanted = order[at]?.lane;
        if (!point.enabled.some(({ lane }) => lane === wanted)) continue;
        at++;
        return wanted ?? '';
      }
      return continueLast(point);
    },
  };
}

/** Consecutive moves of lanes that count as one. */
interface LaneStretch {
  readonly of: string;
  readonly moves: readonly Pick<Move, 'lane' | 'isUpkeep'>[];
}

/**
 * Returns a policy in which each turn lasts until its lanes have made as many moves as in all their turns so far: moves
 * that were blocked in one turn are made in the next. Upkeep does not count. After the last turn no lane is preempted.
 */
function followTurns(
  turns: readonly LaneStretch[],
  { isCalm = false, ofLane }: FollowOptions & { readonly ofLane: (lane: string) => string },
): Policy {
  const wanted = new Map<string, string[]>();
  const goals = turns.map(({ of, moves }) => {
    const lanes = wanted.get(of) ?? [];
    wanted.set(of, lanes);
    for (const { lane, isUpkeep } of moves) if (!isUpkeep) lanes.push(lane);
    return lanes.length;
  });
  const made = new Map<string, number>();
  let at = 0;
  return {
    isCalm,
    choose: point => {
      for (let turn = turns[at]; turn; turn = turns[++at]) {
        const { of } = turn;
        const done = made.get(of) ?? 0;
        if (done >= (goals[at] ?? 0)) continue;
        const own = point.enabled.filter(({ lane }) => ofLane(lane) === of);
        if (own.length === 0) continue;
        const next = wanted.get(of)?.[done];
        const lane = own.some(each => each.lane === next)
          ? (next ?? '')
          : continueLast({ ...point, enabled: own });
        if (!own.find(each => each.lane === lane)?.isUpkeep) made.set(of, done + 1);
        return lane;
      }
      return continueLast(point);
    },
  };
}

interface MinimiseOptions {
  /** Same value as when the failure was found. */
  readonly isCalm?: boolean;
  /** Maximum number of schedules to try. Defaults to 400. */
  readonly most?: number;
  /** Whether the time is used up. */
  readonly isOver?: () => boolean;
  /** Maps a lane to the group that counts as one lane for switches. Defaults to the lane itself. */
  readonly ofLane?: (lane: string) => string;
  /** Number of switches that a reader of the schedule sees. Defaults to all. */
  readonly switchesOf?: (schedule: readonly Move[], performed: Performed) => number;
}

interface MinimisedSchedule {
  readonly performed: Performed;
  /** Moves to follow. The moves after them need no preemption. */
  readonly schedule: readonly Move[];
  /** Number of schedules tried. */
  readonly tries: number;
}

/** Finds a schedule with few switches between lanes and the same failure. */
export async function minimise(
  perform: Perform,
  failure: Performed,
  options: MinimiseOptions = {},
): Promise<MinimisedSchedule> {
  const minimising = new Minimiser(perform, failure, options);
  await minimising.run();
  return minimising.result;
}

class Minimiser {
  readonly #perform: Perform;
  readonly #what: string | undefined;
  readonly #options: MinimiseOptions;
  readonly #ofLane: (lane: string) => string;
  #best: Performed;
  #schedule: readonly Move[];
  #cost: number;
  #tries = 0;
  /** Whether `followLeniently` is used, because the failure does not reproduce with `followTurns`. */
  #isLenient = false;

  constructor(perform: Perform, failure: Performed, options: MinimiseOptions) {
    this.#perform = perform;
    this.#what = whatOf(failure);
    this.#options = options;
    this.#ofLane = options.ofLane ?? (lane => lane);
    this.#best = failure;
    this.#schedule = failure.trace;
    this.#cost = Number.POSITIVE_INFINITY;
  }

  get result(): MinimisedSchedule {
    return { performed: this.#best, schedule: this.#schedule, tries: this.#tries };
  }

  async run(): Promise<void> {
    if (!(await this.#findWayToFollow())) return;
    await this.#shorten();
    for (let size = this.#turns().length; size >= 2; size = Math.floor(size / 2))
      await this.#joinWithin(size);
    while (await this.#simplify());
  }

  /** Finds a way to follow the schedule that reproduces the failure, as the starting point for all variations. */
  async #findWayToFollow(): Promise<boolean> {
    const whole = this.#turnsOf(this.#best.trace);
    const head = this.#turnsOf(headOf(this.#best));
    for (const isLenient of [false, true]) {
      this.#isLenient = isLenient;
      if ((await this.#isBetter(head)) || (await this.#isBetter(whole))) return true;
    }
    return false;
  }

  /** Tries prefixes of the schedule, without preemption after them. */
  async #shorten(): Promise<void> {
    const turns = this.#turns();
    for (let length = 0; length < turns.length - 1; length = length === 0 ? 1 : 2 * length)
      if (await this.#isBetter(turns.slice(0, length))) return;
  }

  /** In each window of `size` turns, tries to run the lanes one after another, or to remove ticks of the clock. */
  async #joinWithin(size: number): Promise<void> {
    for (let at = 0; at < this.#turns().length - 1 && !this.#isOver(); ) {
      const turns = this.#turns();
      const [before, within, after] = [
        turns.slice(0, at),
        turns.slice(at, at + size),
        turns.slice(at + size),
      ];
      let isJoined = false;
      for (const instead of oneAfterAnother(within)) {
        isJoined = await this.#isBetter([...before, ...instead, ...after]);
        if (isJoined) break;
      }
      if (!isJoined) at += Math.max(1, Math.floor(size / 2));
    }
  }

  async #simplify(): Promise<boolean> {
    for (const candidate of simpler(this.#turns())) {
      if (this.#isOver()) return false;
      if (await this.#isBetter(candidate)) return true;
    }
    return false;
  }

  async #isBetter(turns: readonly LaneStretch[]): Promise<boolean> {
    if (this.#isOver()) return false;
    this.#tries++;
    const { isCalm = false } = this.#options;
    const policy = this.#isLenient
      ? followLeniently(
          turns.flatMap(({ moves }) => moves),
          { isCalm },
        )
      : followTurns(turns, { isCalm, ofLane: this.#ofLane });
    const performed = await this.#perform(policy);
    if (whatOf(performed) !== this.#what) return false;
    const schedule = headOf(performed);
    const cost = this.#costOf(schedule, performed);
    if (cost >= this.#cost) return false;
    this.#best = performed;
    this.#schedule = schedule;
    this.#cost = cost;
    return true;
  }

  #costOf(schedule: readonly Move[], performed: Performed): number {
    const { switchesOf } = this.#options;
    const all = switchesIn(schedule, this.#ofLane);
    return (switchesOf?.(schedule, performed) ?? all) * 1e10 + all * 1e5 + schedule.length;
  }

  #isOver(): boolean {
    const { most = 400, isOver } = this.#options;
    return this.#tries >= most || isOver?.() === true;
  }

  #turns(): readonly LaneStretch[] {
    return this.#turnsOf(this.#schedule);
  }

  #turnsOf(trace: readonly Move[]): readonly LaneStretch[] {
    return joinNeighbours(trace.map(move => ({ of: this.#ofLane(move.lane), moves: [move] })));
  }
}

const whatOf = ({ verdict }: Performed): string | undefined =>
  verdict.kind === 'failed' ? verdict.what : undefined;

/** For a deadlock, the moves before the lanes got stuck. */
const headOf = (performed: Performed): readonly Move[] =>
  whatOf(performed) === 'deadlock' ? withoutIdleEnd(performed.trace) : performed.trace;

function joinNeighbours(turns: readonly LaneStretch[]): readonly LaneStretch[] {
  const joined: { of: string; moves: LaneStretch['moves'][number][] }[] = [];
  for (const { of, moves } of turns) {
    const last = joined.at(-1);
    if (last?.of === of) last.moves.push(...moves);
    else joined.push({ of, moves: [...moves] });
  }
  return joined;
}

function* oneAfterAnother(turns: readonly LaneStretch[]): Generator<readonly LaneStretch[]> {
  const lanes = [...new Set(turns.map(({ of }) => of))];
  const inOrder = (order: readonly string[]) =>
    joinNeighbours(order.flatMap(lane => turns.filter(({ of }) => of === lane)));
  if (turns.length > lanes.length) yield inOrder(lanes);
  if (lanes.length > 1) yield inOrder(lanes.toReversed());
  if (lanes.includes(clockLane) && lanes.length > 1)
    yield joinNeighbours(turns.filter(({ of }) => of !== clockLane));
}

/** Yields smaller schedules: without a turn, with two turns of a lane joined, or without preemption from some point. */
function* simpler(turns: readonly LaneStretch[]): Generator<readonly LaneStretch[]> {
  for (let at = turns.length - 2; at >= 0; at--) {
    const next = turns.findIndex(({ of }, index) => index > at + 1 && of === turns[at]?.of);
    if (next >= 0) {
      yield joined(turns, at, next);
      yield joinedLater(turns, at, next);
    }
    yield turns.toSpliced(at, 1);
    yield turns.slice(0, at + 1);
  }
}

const joined = (turns: readonly LaneStretch[], at: number, next: number): readonly LaneStretch[] => [
  ...turns.slice(0, at + 1),
  ...turns.slice(next, next + 1),
  ...turns.slice(at + 1, next),
  ...turns.slice(next + 1),
];

const joinedLater = (turns: readonly LaneStretch[], at: number, next: number): readonly LaneStretch[] => [
  ...turns.slice(0, at),
  ...turns.slice(at + 1, next),
  ...turns.slice(at, at + 1),
  ...turns.slice(next),
];
