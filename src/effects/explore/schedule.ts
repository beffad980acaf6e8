import { RepriseError } from '../../core/index.ts';
import { conflicts, type Keys } from '../effect.ts';

/** State of a schedule, as an outside lane sees it. */
interface OutsideView {
  /** Number of moves made. */
  readonly n: number;
  /** Number of effects granted. */
  readonly entries: number;
  /** Last move. */
  readonly last: Move | undefined;
  /** Enabled moves of the program. */
  readonly enabled: readonly Move[];
  isAlive(lane: string): boolean;
}

/** An event that could happen now. No lane continues before `act` is over. It may abandon lanes and open new ones. */
export interface OutsideMove {
  readonly op: string;
  readonly keys: Keys;
  /** Whether it may never happen. Lanes that could continue only after it are stuck. */
  readonly isOptional?: boolean;
  act(): void | Promise<void>;
}

/** A lane of events that happen to the program: crashes and faults. */
export interface OutsideLane {
  readonly lane: string;
  next(view: OutsideView): OutsideMove | undefined;
}

/** Chooses schedules one after another, based on the results of earlier ones. */
export interface Strategy {
  /** Returns the policy of the next schedule; `undefined` if there is none before a running one has been learned. */
  next(): Policy | undefined;
  /** Takes the result of a schedule returned by `next`. */
  learn(performed: Performed, policy: Policy): void;
}

/**
 * The next step of a lane, as policies see it. At each point a lane has at most one move. Besides the lanes of the
 * program there are outside lanes: the clock, crashes, faults.
 */
export interface Move {
  readonly lane: string;
  readonly op: string;
  readonly keys: Keys;
  /**
   * Positions in the trace of the moves that made it possible, besides those of its own lane: the fork of the lane, and
   * the last moves of the lanes that it waited for.
   */
  readonly after?: readonly number[];
  /** Whether it ends a long effect, which has held its keys since its start and blocked every conflicting move. */
  readonly isEnd?: true;
  /** Whether it disabled itself for all lanes until its keys are written again: a lock was taken. */
  readonly isExclusive?: true;
  /** Whether it waits for time or for an outside event, so that no lane of the program can enable it. */
  readonly isUpToOutside?: true;
  /** Whether it is not a move of the program: time passes, or a lane crashes. */
  readonly isOutside?: true;
  /** Whether it makes no progress: a heartbeat, a clock read, the end of a sleep. */
  readonly isUpkeep?: true;
}

/** A decision: which of the enabled moves comes next. Both lists are sorted by lane. */
export interface Point {
  /** Number of moves made, which is the position of the next one in the trace. */
  readonly n: number;
  readonly enabled: readonly Move[];
  readonly waiting: readonly Move[];
  /** Lane of the last move. */
  readonly last: string | undefined;
}

/** Takes the decisions of one schedule. */
export interface Policy {
  /** Returns the lane of an enabled move. Throws Cut if an equivalent schedule has been seen. */
  choose(point: Point): string;
  /** Whether time advances only when every lane waits, and no crashes and faults occur. */
  readonly isCalm?: boolean;
}

/** Outcome of a schedule. `what` is the same for failures of one kind. */
export type ScheduleVerdict =
  | { readonly kind: 'passed' }
  | { readonly kind: 'failed'; readonly what: string; readonly message: string }
  | { readonly kind: 'inconclusive'; readonly why: string }
  | { readonly kind: 'cut' };

/** Result of one schedule. */
export interface Performed {
  readonly trace: readonly Move[];
  /** Pending moves of lanes that had not ended. */
  readonly left: readonly Move[];
  /** Number of effects granted, including those without a decision. */
  readonly entries: number;
  readonly verdict: ScheduleVerdict;
}

export type Perform = (policy: Policy) => Promise<Performed>;

/** Thrown by a policy if every continuation is equivalent to one that has been seen. */
export class ScheduleCut extends Error {
  override readonly name = 'Cut';
}

/** Lane of the virtual clock. */
export const clockLane = 'clock';

/** Whether the order of the moves can matter. */
export const areDependent = (a: Move, b: Move): boolean => a.lane === b.lane || conflicts(a.keys, b.keys);

/**
 * Returns the schedule up to the point after which nothing changes. Once all lanes wait, time advances by itself, and
 * lanes that wake up, look and sleep again have no effect.
 */
export function withoutIdleEnd(trace: readonly Move[]): readonly Move[] {
  const last = trace.findLastIndex(changesSomething);
  const tick = trace.findIndex(({ lane }, n) => n > last && lane === clockLane);
  return tick < 0 ? trace : trace.slice(0, tick);
}

const changesSomething = ({ lane, isUpkeep, keys: { reads = [], writes = [] } }: Move): boolean =>
  lane !== clockLane && !isUpkeep && (reads.length === 0 || writes.length > 0);

/** Returns the number of switches from one lane to another. */
export function switchesIn(
  trace: readonly { readonly lane: string }[],
  ofLane: (lane: string) => string = lane => lane,
): number {
  let switches = 0;
  for (let n = 1; n < trace.length; n++) {
    const [before, now] = [trace[n - 1]?.lane ?? '', trace[n]?.lane ?? ''];
    if (before !== now && ofLane(before) !== ofLane(now)) switches++;
  }
  return switches;
}

/**
 * Formats a schedule as the lanes of its moves: `worker_a*5 worker_b*6 worker_a`. Special characters in the names of
 * lanes are percent-encoded.
 */
export function formatSchedule(moves: readonly { readonly lane: string }[]): string {
  const turns: { readonly lane: string; count: number }[] = [];
  for (const { lane } of moves) {
    const last = turns.at(-1);
    if (last?.lane === lane) last.count++;
    else turns.push({ lane, count: 1 });
  }
  return turns.map(({ lane, count }) => `${escaped(lane)}${count > 1 ? `*${count}` : ''}`).join(' ');
}

/** Parses the output of `formatSchedule`. Throws TAPE_INVALID. */
export function parseSchedule(text: string): readonly { readonly lane: string }[] {
  return text
    .split(/\s+/)
    .filter(turn => turn !== '')
    .flatMap(turn => {
      const [, name, count = '1'] = /^([^*]+)(?:\*([1-9]\d{0,8}))?$/.exec(turn) ?? [];
      if (name === undefined) throw notATurn(turn);
      return Array.from({ length: Number(count) }, () => ({ lane: unescaped(name, turn) }));
    });
}

const escaped = (lane: string): string =>
  lane === ''
    ? '%'
    : lane.replaceAll(/[%*\s]/g, character => encodeURIComponent(character).replace('*', '%2A'));

function unescaped(name: string, turn: string): string {
  if (name === '%') return '';
  try {
    return decodeURIComponent(name);
  } catch {
    throw notATurn(turn);
  }
}

const notATurn = (turn: string): RepriseError =>
  new RepriseError('TAPE_INVALID', `${turn} is not a valid turn of a schedule`, {
    hint: 'write the name of a lane and its number of moves, such as worker_a*5',
  });
