import { type Timestamp, toEpochMs } from '../../core/time.ts';

const firstMs = 5 * 60_000;
const longestMs = 60 * 60_000;
const leastMs = 1000;

export interface PauseOf {
  /** When the limit resets, if the agent said so. */
  readonly resetsAt?: Timestamp | undefined;
  readonly now: number;
  /** How many sessions of the attempt there have been, from 1. */
  readonly times: number;
}

/**
 * How long to wait for a limit to reset. A moment that has passed, or that nobody named, is no reason to ask again and
 * again: each time the wait is twice as long.
 */
export function pauseMs({ resetsAt, now, times }: PauseOf): number {
  const doubled = (ms: number): number => Math.min(longestMs, ms * 2 ** Math.max(0, times - 1));
  const untilReset = resetsAt === undefined ? Number.NaN : toEpochMs(resetsAt) - now;
  if (Number.isNaN(untilReset)) return doubled(firstMs);
  return untilReset >= leastMs ? untilReset : doubled(leastMs);
}
