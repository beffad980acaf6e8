import { conflicts, type Keys } from '../effect.ts';

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
