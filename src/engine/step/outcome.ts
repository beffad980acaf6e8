import type { Usage } from '../../agents/index.ts';
import { type ErrorCode, type ErrorData, RepriseError, toErrorData } from '../../core/index.ts';
import type { SpendingLimit } from '../../workflow/index.ts';
import type { StepEnd } from '../run/messages.ts';

/** The outcome of the work itself, before it is saved. */
export interface WorkOutcome {
  readonly end: StepEnd;
  /** Summary of the work. Its first line becomes the subject of the commit. */
  readonly summary: string;
  /** Complete commit message, which replaces the one made from the summary. */
  readonly message?: string | undefined;
}

export const failedWith = (error: ErrorData): StepEnd => ({ kind: 'failed', error });

/** Errors of Reprise or its store, which are not failures of a step. */
const internalErrors: ReadonlySet<ErrorCode> = new Set([
  'FENCED',
  'SEQUENCE_CONFLICT',
  'STORE_FAILED',
  'LANE_MISUSE',
  'DEADLOCK',
  'INTERNAL',
]);

/** Returns the end for a thrown error, or `undefined` if the error is unexpected. */
export function endOfThrown(thrown: unknown): StepEnd | undefined {
  if (!(thrown instanceof RepriseError) || internalErrors.has(thrown.code)) return undefined;
  if (thrown.code === 'CANCELLED') return { kind: 'cancelled', reason: 'cancelled' };
  const error = toErrorData(thrown);
  // The work so far is kept, and a resume continues it.
  return thrown.code === 'LOCK_STALLED' ? { kind: 'suspended', error } : failedWith(error);
}

/**
 * Whether another process owns the run. That process may already work in the same folders, so this one must not touch
 * them.
 */
export const isFenced = (thrown: unknown): boolean =>
  thrown instanceof RepriseError && thrown.code === 'FENCED';

/** Runs follow-up work whose failure must not hide how the step ended. Throws only FENCED. */
export async function bestEffort(
  body: () => Promise<void>,
  onFailure: (error: ErrorData) => void,
): Promise<void> {
  try {
    await body();
  } catch (thrown) {
    if (isFenced(thrown)) throw thrown;
    onFailure(toErrorData(thrown));
  }
}

const tokensOf = ({ inputTokens, outputTokens }: Usage): number => inputTokens + outputTokens;

/** Returns the remaining budget. Unknown cost subtracts nothing. */
export const remainingAfter = (left: SpendingLimit, used: Usage): SpendingLimit => ({
  ...(left.costUsd === undefined ? {} : { costUsd: left.costUsd - (used.costUsd ?? 0) }),
  ...(left.tokens === undefined ? {} : { tokens: left.tokens - tokensOf(used) }),
});

/** Describes overspending, or returns `undefined` within the limits. */
export function overspent(left: SpendingLimit, used: Usage): string | undefined {
  if (left.costUsd !== undefined && used.costUsd !== null && used.costUsd > left.costUsd)
    return `the agent cost ${dollars(used.costUsd)}, but only ${dollars(left.costUsd)} was left`;
  if (left.tokens !== undefined && tokensOf(used) > left.tokens)
    return `the agent used ${tokensOf(used)} tokens, but only ${Math.max(0, left.tokens)} were left`;
  return undefined;
}

/** Whether nothing is left for another session. */
export const isUsedUp = ({ costUsd, tokens }: SpendingLimit): boolean =>
  (costUsd !== undefined && costUsd <= 0) || (tokens !== undefined && tokens <= 0);

/** Whether a limit in dollars cannot be enforced because the agent does not report its cost. */
export const isBlind = (left: SpendingLimit, used: Usage): boolean =>
  left.costUsd !== undefined && used.costUsd === null && tokensOf(used) > 0;

/** Formats dollars with two decimals, or with up to four if the amount has them. */
const dollars = (amount: number): string =>
  `$${Math.max(0, amount)
    .toFixed(4)
    .replace(/0{1,2}$/, '')}`;
