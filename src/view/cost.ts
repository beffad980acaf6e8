import type { EventOf } from '../core/index.ts';

/** What a session used, as its event says. */
export type SessionUsage = EventOf<'session.ended'>['data']['usage'];

/** Cost and tokens of sessions. */
export interface Spending {
  /** Sum of the known costs. */
  readonly costUsd: number;
  readonly sessions: number;
  /** Number of sessions with a known cost. */
  readonly priced: number;
  /** Sum of the known input and output tokens. */
  readonly tokens: number;
  /** Number of sessions with known tokens. */
  readonly counted: number;
}

export const nothingSpent: Spending = { costUsd: 0, sessions: 0, priced: 0, tokens: 0, counted: 0 };

const tokensOf = ({ inputTokens, outputTokens }: SessionUsage): number => inputTokens + outputTokens;

export const sessionSpending = (usage: SessionUsage): Spending => ({
  costUsd: usage.costUsd ?? 0,
  sessions: 1,
  priced: usage.costUsd === null ? 0 : 1,
  tokens: tokensOf(usage),
  counted: 1,
});

/** Spending of an interrupted session, whose cost and tokens were never reported. */
export const unknownSession: Spending = { ...nothingSpent, sessions: 1 };

/** Spending that the record of a worker contains. */
export const recordedCost = ({ costUsd }: Pick<SessionUsage, 'costUsd'>): Spending =>
  costUsd === null ? unknownSession : { ...unknownSession, costUsd, priced: 1, counted: 1 };

export const spentTogether = (all: readonly Spending[]): Spending =>
  all.reduce(
    (sum, each) => ({
      costUsd: sum.costUsd + each.costUsd,
      sessions: sum.sessions + each.sessions,
      priced: sum.priced + each.priced,
      tokens: sum.tokens + each.tokens,
      counted: sum.counted + each.counted,
    }),
    nothingSpent,
  );

/** Adds a usage report of a running session. */
export const addUsage = (sum: SessionUsage | undefined, usage: SessionUsage): SessionUsage => ({
  inputTokens: (sum?.inputTokens ?? 0) + usage.inputTokens,
  outputTokens: (sum?.outputTokens ?? 0) + usage.outputTokens,
  cachedTokens: (sum?.cachedTokens ?? 0) + usage.cachedTokens,
  costUsd: sum?.costUsd == null ? usage.costUsd : sum.costUsd + (usage.costUsd ?? 0),
});

/** `$0.12`, `>= $0.12` if some of it is unknown, or `cost unknown`. Empty without a session. */
export function costText({ sessions, priced, costUsd }: Spending): string {
  if (sessions === 0) return '';
  if (priced === 0) return 'cost unknown';
  return `${priced < sessions ? '>= ' : ''}${dollars(costUsd)}`;
}

/** `>= 12.3k tokens` if some of them are unknown. Empty without tokens. */
const tokensUsed = ({ tokens, counted, sessions }: Spending): string =>
  tokens > 0 ? `${counted < sessions ? '>= ' : ''}${tokensText(tokens)} tokens` : '';

/** Cost, or tokens while the cost is unknown: a row of a table has no room for both. */
export const shortSpending = (spending: Spending): string =>
  spending.priced > 0 ? costText(spending) : tokensUsed(spending);

/** `$0.12, 12.3k tokens`, with `>= ` before what is not fully known. Empty without a session. */
export function spendingText(spending: Spending): string {
  return [costText(spending), tokensUsed(spending)].filter(text => text !== '').join(', ');
}

/** Cost in US dollars; `null` if some of it is unknown. 0 without a session. */
export const knownCost = ({ sessions, priced, costUsd }: Spending): number | null =>
  priced < sessions ? null : roundedCost(costUsd);

/** Rounds away the noise of floating-point sums. */
const roundedCost = (costUsd: number): number => Math.round(costUsd * 1e9) / 1e9;

function dollars(amount: number): string {
  if (amount > 0 && amount < 0.01) return `$${amount.toFixed(4)}`;
  return `$${amount.toFixed(2)}`;
}

/** `950`, `12.3k`, `1.2M`. */
function tokensText(tokens: number): string {
  if (tokens < 1000) return String(tokens);
  if (tokens < 999_950) return `${(tokens / 1000).toFixed(1)}k`;
  return `${(tokens / 1e6).toFixed(1)}M`;
}
