import type { AgentDefinition } from './agent.ts';
import type { Usage } from './session.ts';

export const noUsage: Usage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, costUsd: null };

export const addUsage = (a: Usage, b: Usage): Usage => ({
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
  cachedTokens: a.cachedTokens + b.cachedTokens,
  costUsd: a.costUsd === null ? b.costUsd : a.costUsd + (b.costUsd ?? 0),
});

/** What came on top of `before`, for agents that count on; never less than nothing. */
export const usageSince = (before: Usage, now: Usage): Usage => ({
  inputTokens: Math.max(0, now.inputTokens - before.inputTokens),
  outputTokens: Math.max(0, now.outputTokens - before.outputTokens),
  cachedTokens: Math.max(0, now.cachedTokens - before.cachedTokens),
  costUsd: now.costUsd === null ? null : Math.max(0, now.costUsd - (before.costUsd ?? 0)),
});

/** With a cost worked out from the agent's price, if nobody said one. */
export function priced(usage: Usage, price: AgentDefinition['price']): Usage {
  if (usage.costUsd !== null || !price) return usage;
  const { inputTokens, outputTokens } = usage;
  return {
    ...usage,
    costUsd: (inputTokens * price.inputPerMtok + outputTokens * price.outputPerMtok) / 1_000_000,
  };
}
