import { RepriseError } from '../../core/errors.ts';
import { conflicts, type Keys } from '../effect.ts';

/** What a lane of the outside sees when it is asked what it could do. */
interface OutsideView {
  /** How many moves were made. */
  readonly n: number;
  /** How many effects were granted. */
  readonly entries: number;
  /** The move that was made last. */
  readonly last: Move | undefined;
  /** What lanes of the program could do now. */
  readonly enabled: readonly Move[];
  isAlive(lane: string): boolean;
}

/** Something that could happen now. Nobody goes on before `act` is over; it may leave lanes behind, and open new ones. */
export interface OutsideMove {
  readonly op: string;
  readonly keys: Keys;
  /** It may as well never happen: lanes that could go on after nothing else are stuck. */
  readonly isOptional?: boolean;
  act(): void | Promise<void>;
}

/** A lane of things that happen to the program: crashes, faults. */
export interface OutsideLane {
  readonly lane: string;
  next(view: OutsideView): OutsideMove | undefined;
}

/** A way to choose many schedules, each of which may depend on how those before went. */
export interface Strategy {
  /** The policy of the next schedule; `undefined` when there is nothing to try, before what is under way is learned. */
  next(): Policy | undefined;
  /** How a schedule went that was given. */
  learn(performed: Performed, policy: Policy): void;
}

/**
 * What a lane would do next, as policies see it. Of all moves at a point, each is of another lane. Beside the lanes of
 * the program there are lanes of the outside: the clock, crashes, faults.
 */
export interface Move {
  readonly lane: string;
  readonly op: string;
  readonly keys: Keys;
  /**
   * Places in the trace of what made it possible, beside what its lane did before: where the lane was forked, and what
   * those did last that it waited for.
   */
  readonly after?: readonly number[];
  /** The end of what has held its keys since its begin: until then, nothing that conflicts with it can be done. */
  readonly isEnd?: true;
  /** Once it was made nobody could make it again, until what it writes is written: a lock was taken. */
  readonly isExclusive?: true;
  /** It waits for the time, or for somebody outside: no lane of the program can make it possible. */
  readonly isUpToOutside?: true;
  /** No lane of the program makes it: time passes, something crashes. */
  readonly isOutside?: true;
  /** A sign of life, a look at the clock, waking up: it brings nothing forward. */
  readonly isUpkeep?: true;
}

/** A decision: one of those that are enabled goes on. Both lists are in the order of lanes. */
export interface Point {
  /** How many moves were made before: the place of the next one in the trace. */
  readonly n: number;
  readonly enabled: readonly Move[];
  readonly waiting: readonly Move[];
  /** The lane that went on last. */
  readonly last: string | undefined;
}

/** Decides for one schedule, from its beginning to its end. */
export interface Policy {
  /** Gives the lane of a move that is enabled. Throws Cut when nothing new can come. */
  choose(point: Point): string;
  /** Time passes only when nobody can do anything else, and nothing comes from the outside: no crash, no fault. */
  readonly isCalm?: boolean;
}

/** How one schedule ended; `what` is the same for failures of one kind. */
export type Verdict =
  | { readonly kind: 'passed' }
  | { readonly kind: 'failed'; readonly what: string; readonly message: string }
  | { readonly kind: 'inconclusive'; readonly why: string }
  | { readonly kind: 'cut' };

/** One schedule from the beginning to its end. */
export interface Performed {
  readonly trace: readonly Move[];
  /** What lanes would have done next, of those that had not ended. */
  readonly left: readonly Move[];
  /** How many effects were granted, with those about which there was nothing to decide. */
  readonly entries: number;
  readonly verdict: Verdict;
}

export type Perform = (policy: Policy) => Promise<Performed>;

/** Thrown by a policy: whatever comes now was seen in another order. */
export class Cut extends Error {
  override readonly name = 'Cut';
}

/** The lane in which time passes. */
export const clockLane = 'clock';

/** Whether their order matters: whether they may come to something else the other way round. */
export const areDependent = (a: Move, b: Move): boolean => a.lane === b.lane || conflicts(a.keys, b.keys);

/**
 * The schedule as far as anything changes. When all lanes wait, time goes on by itself: who wakes up, looks and sleeps
 * again decides nothing any more.
 */
export function withoutIdleEnd(trace: readonly Move[]): readonly Move[] {
  const last = trace.findLastIndex(changesSomething);
  const tick = trace.findIndex(({ lane }, n) => n > last && lane === clockLane);
  return tick < 0 ? trace : trace.slice(0, tick);
}

const changesSomething = ({ lane, isUpkeep, keys: { reads = [], writes = [] } }: Move): boolean =>
  lane !== clockLane && !isUpkeep && (reads.length === 0 || writes.length > 0);

/** How often another lane went on than the one before. */
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
 * Which lane went on, one after another, as text: `worker_a*5 worker_b*6 worker_a`. What would be read as something else
 * in the name of a lane is written as in a URL.
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
  new RepriseError('TAPE_INVALID', `${turn} is not a turn of a schedule`, {
    hint: 'write the name of a lane, and how often it goes on: worker_a*5',
  });
