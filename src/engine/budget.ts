import type { SpendingLimit } from '../workflow/model.ts';
import type { Spent } from './state/work-state.ts';

/** What was used up beyond what may be, for people; undefined if nothing was. Unknown cost counts as none. */
export function overspent(spent: Spent, limit: SpendingLimit): string | undefined {
  if (limit.costUsd !== undefined && spent.costUsd > limit.costUsd)
    return `cost ${usd(spent.costUsd)}, and may cost ${usd(limit.costUsd)}`;
  if (limit.tokens !== undefined && spent.tokens > limit.tokens)
    return `used ${spent.tokens} tokens, and may use ${limit.tokens}`;
  return undefined;
}

/** What is left of several limits, each with what was used of it: the least of them. */
export function leftOf(
  limits: readonly { readonly limit: SpendingLimit; readonly spent: Spent }[],
): SpendingLimit {
  const least = (values: readonly (number | undefined)[]): number | undefined => {
    const known = values.filter(value => value !== undefined);
    return known.length > 0 ? Math.max(0, Math.min(...known)) : undefined;
  };
  return {
    costUsd: least(limits.map(({ limit, spent }) => limit.costUsd && limit.costUsd - spent.costUsd)),
    tokens: least(limits.map(({ limit, spent }) => limit.tokens && limit.tokens - spent.tokens)),
  };
}

const usd = (amount: number): string => `$${amount.toFixed(2)}`;
