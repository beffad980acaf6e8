import { RepriseError } from '../../core/errors.ts';
import { whoeverHasTheBaton } from './policies.ts';
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

/** A move of a schedule that is followed; without `op`, whatever the lane does then. */
interface Followed {
  readonly lane: string;
  readonly op?: string;
}

interface FollowOptions {
  /** As when the schedule was found. */
  readonly isCalm?: boolean;
}

/**
 * The schedule and nothing else, or, with `goesOn`, no interruption after its end. Throws REPLAY_DIVERGED where the program
 * does not do what the schedule says.
 */
export function followStrictly(
  order: readonly Followed[],
  { isCalm = false, goesOn = false }: FollowOptions & { readonly goesOn?: boolean } = {},
): Policy {
  return {
    isCalm,
    choose: point => {
      const wanted = order[point.n];
      if (!wanted && goesOn) return whoeverHasTheBaton(point);
      const move = wanted && point.enabled.find(({ lane }) => lane === wanted.lane);
      if (move && (wanted.op === undefined || wanted.op === move.op)) return move.lane;
      throw new RepriseError('REPLAY_DIVERGED', misfit(point, wanted));
    },
  };
}

function misfit({ n, enabled, waiting }: Point, wanted: Followed | undefined): string {
  const could = `what can be done is ${enabled.map(described).join(', ') || 'nothing'}`;
  if (!wanted) return `the schedule ends after ${n} moves, and the program does not; ${could}`;
  const says = `move ${n + 1} of the schedule is ${described(wanted)}`;
  const at = [...enabled, ...waiting].find(({ lane }) => lane === wanted.lane);
  if (!at) return `${says}, and there is no such lane now; ${could}`;
  const isWaiting = waiting.includes(at);
  return `${says}, and ${at.lane} ${isWaiting ? 'waits' : 'is'} at ${at.op}; ${could}`;
}

const described = ({ lane, op }: Followed | Move): string => (op === undefined ? lane : `${lane} ${op}`);

/**
 * As much of the schedule as the program can do: moves of lanes that cannot go on are left out, and after its end no
 * lane is interrupted. For looking for a simpler schedule that fails like this one.
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
      return whoeverHasTheBaton(point);
    },
  };
}

/** A stretch of a schedule in which lanes go on that count as one. */
interface Turn {
  readonly of: string;
  readonly moves: readonly Pick<Move, 'lane' | 'isUpkeep'>[];
}

/**
 * Each turn lasts until its lanes have done as much as in all their turns so far: what they could not do in one of them
 * they do in the next. Signs of life do not count. After the last turn no lane is interrupted.
 */
function followTurns(
  turns: readonly Turn[],
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
          : whoeverHasTheBaton({ ...point, enabled: own });
        if (!own.find(each => each.lane === lane)?.isUpkeep) made.set(of, done + 1);
        return lane;
      }
      return whoeverHasTheBaton(point);
    },
  };
}

interface MinimiseOptions {
  /** As when the failure was found. */
  readonly isCalm?: boolean;
  /** How many schedules may be tried; 400 unless it is said. */
  readonly most?: number;
  /** Whether no more time is left to try. */
  readonly isOver?: () => boolean;
  /** What counts as one lane when switches are counted; each lane by itself unless it is said. */
  readonly ofLane?: (lane: string) => string;
  /** How many switches there are for whoever reads the schedule of what was performed; all of them unless it is said. */
  readonly switchesOf?: (schedule: readonly Move[], performed: Performed) => number;
}

interface Minimised {
  readonly performed: Performed;
  /** What of it has to be followed: what comes after it comes by itself, with no interruption. */
  readonly schedule: readonly Move[];
  /** How many schedules were tried. */
  readonly tries: number;
}

/** A schedule with few switches between lanes that fails in the same way. */
export async function minimise(
  perform: Perform,
  failure: Performed,
  options: MinimiseOptions = {},
): Promise<Minimised> {
  const minimising = new Minimising(perform, failure, options);
  await minimising.run();
  return minimising.result;
}

class Minimising {
  readonly #perform: Perform;
  readonly #what: string | undefined;
  readonly #options: MinimiseOptions;
  readonly #ofLane: (lane: string) => string;
  #best: Performed;
  #schedule: readonly Move[];
  #cost: number;
  #tries = 0;
  /** Turns may be made up for later, unless it does not fail then. */
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

  get result(): Minimised {
    return { performed: this.#best, schedule: this.#schedule, tries: this.#tries };
  }

  async run(): Promise<void> {
    if (!(await this.#findWayToFollow())) return;
    await this.#shorten();
    for (let size = this.#turns().length; size >= 2; size = Math.floor(size / 2))
      await this.#joinWithin(size);
    while (await this.#simplify());
  }

  /** Whatever is tried differs from this: it has to fail as well. */
  async #findWayToFollow(): Promise<boolean> {
    const whole = this.#turnsOf(this.#best.trace);
    const head = this.#turnsOf(headOf(this.#best));
    for (const isLenient of [false, true]) {
      this.#isLenient = isLenient;
      if ((await this.#isBetter(head)) || (await this.#isBetter(whole))) return true;
    }
    return false;
  }

  /** Less of it, and then no interruption. */
  async #shorten(): Promise<void> {
    const turns = this.#turns();
    for (let length = 0; length < turns.length - 1; length = length === 0 ? 1 : 2 * length)
      if (await this.#isBetter(turns.slice(0, length))) return;
  }

  /** Lanes that take turns so many times go on one after another there, or without time that passes. */
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

  async #isBetter(turns: readonly Turn[]): Promise<boolean> {
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

  #turns(): readonly Turn[] {
    return this.#turnsOf(this.#schedule);
  }

  #turnsOf(trace: readonly Move[]): readonly Turn[] {
    return joinNeighbours(trace.map(move => ({ of: this.#ofLane(move.lane), moves: [move] })));
  }
}

const whatOf = ({ verdict }: Performed): string | undefined =>
  verdict.kind === 'failed' ? verdict.what : undefined;

/** Of lanes that got stuck, what came before they were. */
const headOf = (performed: Performed): readonly Move[] =>
  whatOf(performed) === 'deadlock' ? withoutIdleEnd(performed.trace) : performed.trace;

function joinNeighbours(turns: readonly Turn[]): readonly Turn[] {
  const joined: { of: string; moves: Turn['moves'][number][] }[] = [];
  for (const { of, moves } of turns) {
    const last = joined.at(-1);
    if (last?.of === of) last.moves.push(...moves);
    else joined.push({ of, moves: [...moves] });
  }
  return joined;
}

function* oneAfterAnother(turns: readonly Turn[]): Generator<readonly Turn[]> {
  const lanes = [...new Set(turns.map(({ of }) => of))];
  const inOrder = (order: readonly string[]) =>
    joinNeighbours(order.flatMap(lane => turns.filter(({ of }) => of === lane)));
  if (turns.length > lanes.length) yield inOrder(lanes);
  if (lanes.length > 1) yield inOrder(lanes.toReversed());
  if (lanes.includes(clockLane) && lanes.length > 1)
    yield joinNeighbours(turns.filter(({ of }) => of !== clockLane));
}

/** What may fail as well: a turn left out, two turns of a lane made one, or no interruptions from there on. */
function* simpler(turns: readonly Turn[]): Generator<readonly Turn[]> {
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

const joined = (turns: readonly Turn[], at: number, next: number): readonly Turn[] => [
  ...turns.slice(0, at + 1),
  ...turns.slice(next, next + 1),
  ...turns.slice(at + 1, next),
  ...turns.slice(next + 1),
];

const joinedLater = (turns: readonly Turn[], at: number, next: number): readonly Turn[] => [
  ...turns.slice(0, at),
  ...turns.slice(at + 1, next),
  ...turns.slice(at, at + 1),
  ...turns.slice(next),
];
