import type { Usage } from '../../agents/session.ts';
import { type ErrorCode, type ErrorData, RepriseError, toErrorData } from '../../core/errors.ts';
import type { SpendingLimit } from '../../workflow/model.ts';
import type { StepEnd } from '../run/messages.ts';

/** How the work itself ended, before it is kept. */
export interface Done {
  readonly end: StepEnd;
  /** Its first line becomes the message of the commit. */
  readonly summary: string;
  /** The whole message of the commit, if it is to be another one. */
  readonly message?: string | undefined;
}

export const failedWith = (error: ErrorData): StepEnd => ({ kind: 'failed', error });

/** What is wrong with Reprise or its store is not the failure of a step. */
const notOfTheStep: ReadonlySet<ErrorCode> = new Set([
  'FENCED',
  'SEQUENCE_CONFLICT',
  'STORE_FAILED',
  'LANE_MISUSE',
  'DEADLOCK',
  'INTERNAL',
]);

/** How work ends that ended in an error; `undefined` if nobody foresaw it. */
export function endOfThrown(thrown: unknown): StepEnd | undefined {
  if (!(thrown instanceof RepriseError) || notOfTheStep.has(thrown.code)) return undefined;
  return thrown.code === 'CANCELLED'
    ? { kind: 'cancelled', reason: 'cancelled' }
    : failedWith(toErrorData(thrown));
}

/** The run has another owner, who may be at work in the same folders by now: nothing more is to be touched. */
export const isFenced = (thrown: unknown): boolean =>
  thrown instanceof RepriseError && thrown.code === 'FENCED';

/** What happens after the work is done must not hide how it ended. Throws FENCED alone. */
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

/** What is left of a limit. Cost that nobody knows takes nothing away. */
export const leftAfter = (left: SpendingLimit, used: Usage): SpendingLimit => ({
  ...(left.costUsd === undefined ? {} : { costUsd: left.costUsd - (used.costUsd ?? 0) }),
  ...(left.tokens === undefined ? {} : { tokens: left.tokens - tokensOf(used) }),
});

/** Which part of the limit has been passed, in words; `undefined` if none has. */
export function overspent(left: SpendingLimit, used: Usage): string | undefined {
  if (left.costUsd !== undefined && used.costUsd !== null && used.costUsd > left.costUsd)
    return `the agent has cost ${dollars(used.costUsd)}, and ${dollars(left.costUsd)} were left`;
  if (left.tokens !== undefined && tokensOf(used) > left.tokens)
    return `the agent has used ${tokensOf(used)} tokens, and ${Math.max(0, left.tokens)} were left`;
  return undefined;
}

/** Whether nothing is left to begin with. */
export const isUsedUp = ({ costUsd, tokens }: SpendingLimit): boolean =>
  (costUsd !== undefined && costUsd <= 0) || (tokens !== undefined && tokens <= 0);

/** A limit on money that cannot be kept, because nobody says what the agent costs. */
export const isBlind = (left: SpendingLimit, used: Usage): boolean =>
  left.costUsd !== undefined && used.costUsd === null && tokensOf(used) > 0;

/** In cents, or as exactly as it takes to tell two amounts apart. */
const dollars = (amount: number): string =>
  `$${Math.max(0, amount)
    .toFixed(4)
    .replace(/0{1,2}$/, '')}`;
