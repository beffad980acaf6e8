import type { EventOf } from '../core/events.ts';

type Usage = EventOf<'session.ended'>['data']['usage'];

/** What sessions used up. */
export interface Spending {
  /** As far as it is known. */
  readonly costUsd: number;
  /** How many sessions there were, and of how many the cost is known. */
  readonly sessions: number;
  readonly priced: number;
  /** Read and written ones together. */
  readonly tokens: number;
}

export const nothingSpent: Spending = { costUsd: 0, sessions: 0, priced: 0, tokens: 0 };

const tokensOf = ({ inputTokens, outputTokens }: Usage): number => inputTokens + outputTokens;

export const sessionSpending = (usage: Usage): Spending => ({
  costUsd: usage.costUsd ?? 0,
  sessions: 1,
  priced: usage.costUsd === null ? 0 : 1,
  tokens: tokensOf(usage),
});

/** For a session that was cut off: it cost something, and nobody will ever say what. */
export const unknownSession: Spending = { costUsd: 0, sessions: 1, priced: 0, tokens: 0 };

export const spentTogether = (all: readonly Spending[]): Spending =>
  all.reduce(
    (sum, each) => ({
      costUsd: sum.costUsd + each.costUsd,
      sessions: sum.sessions + each.sessions,
      priced: sum.priced + each.priced,
      tokens: sum.tokens + each.tokens,
    }),
    nothingSpent,
  );

/** One session under way, added up from what its agent says now and then. */
export const addUsage = (sum: Usage | undefined, usage: Usage): Usage => ({
  inputTokens: (sum?.inputTokens ?? 0) + usage.inputTokens,
  outputTokens: (sum?.outputTokens ?? 0) + usage.outputTokens,
  cachedTokens: (sum?.cachedTokens ?? 0) + usage.cachedTokens,
  costUsd: sum?.costUsd == null ? usage.costUsd : sum.costUsd + (usage.costUsd ?? 0),
});

/** `$0.12`, `>= $0.12` if some of it is unknown, `cost unknown`; empty where no agent worked. */
export function costText({ sessions, priced, costUsd }: Spending): string {
  if (sessions === 0) return '';
  if (priced === 0) return 'cost unknown';
  return `${priced < sessions ? '>= ' : ''}${dollars(costUsd)}`;
}

/** `$0.12, 12.3k tokens`; empty where no agent worked. */
export function spendingText(spending: Spending): string {
  const tokens = spending.tokens > 0 ? [`${tokensText(spending.tokens)} tokens`] : [];
  return [costText(spending), ...tokens].filter(text => text !== '').join(', ');
}

/** A number if all of it is known; null if some of it is not. 0 where no agent worked. */
export const knownCost = ({ sessions, priced, costUsd }: Spending): number | null =>
  priced < sessions ? null : roundedCost(costUsd);

/** Sums of binary fractions end in noise. */
const roundedCost = (costUsd: number): number => Math.round(costUsd * 1e9) / 1e9;

function dollars(amount: number): string {
  if (amount > 0 && amount < 0.01) return `$${amount.toFixed(4)}`;
  return `$${amount.toFixed(2)}`;
}

/** `950`, `12.3k`, `1.2M`. */
export function tokensText(tokens: number): string {
  if (tokens < 1000) return String(tokens);
  if (tokens < 999_950) return `${(tokens / 1000).toFixed(1)}k`;
  return `${(tokens / 1e6).toFixed(1)}M`;
}
