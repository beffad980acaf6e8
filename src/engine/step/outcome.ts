import type { Usage } from '../../agents/session.ts';
import type { SpendingLimit } from '../../workflow/model.ts';

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
