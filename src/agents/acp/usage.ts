import type { Json } from '../../core/index.ts';
import { at, event, numberAt, type Signal, type Step, textAt } from '../driver/protocol.ts';
import { addUsage, noUsage, type Usage } from '../session.ts';
import type { AcpState } from './acp.ts';

/** Usage that was reported while the turn is under way. */
export interface TurnUsage {
  readonly counted: Usage;
  /** Size of the context in the current request to the model. */
  readonly contextTokens: number;
  /** Whether a tool ended, so that the next size of the context belongs to another request. */
  readonly isNextRequest: boolean;
}

export const noTurnUsage: TurnUsage = { counted: noUsage, contextTokens: 0, isNextRequest: true };

/**
 * Handles a `usage_update`, which has the size of the context and often the total cost. Every request to the model sends
 * the whole context, so the sum of its sizes approximates the tokens until the turn reports them.
 */
export function takeUsageUpdate(state: AcpState, update: Json | undefined): Step<AcpState> {
  const { counted, contextTokens } = state.turnUsage;
  const used = numberAt(update, 'used') ?? 0;
  // Some agents repeat the last size, for example with the total cost, before another request.
  const isNextRequest = state.turnUsage.isNextRequest && used !== contextTokens;
  const before = isNextRequest ? 0 : contextTokens;
  const isDollars = textAt(update, 'cost', 'currency') === 'USD';
  const total = isDollars ? numberAt(update, 'cost', 'amount') : undefined;
  const usage = {
    ...noUsage,
    inputTokens: Math.max(0, used - before),
    costUsd: total === undefined ? null : costSince(state.costUsd, total),
  };
  const turnUsage = {
    counted: addUsage(counted, usage),
    contextTokens: Math.max(before, used),
    isNextRequest: state.turnUsage.isNextRequest && !isNextRequest,
  };
  return { state: { ...state, turnUsage, costUsd: total ?? state.costUsd }, signals: usageSignals(usage) };
}

/** Counts the usage that Qwen Code puts beside a message. */
export function takeMessageUsage(state: AcpState, update: Json | undefined): Step<AcpState> {
  const usage = tokensIn(at(update, '_meta', 'usage'));
  if (!usage) return { state, signals: [] };
  const counted = addUsage(state.turnUsage.counted, usage);
  return { state: { ...state, turnUsage: { ...state.turnUsage, counted } }, signals: usageSignals(usage) };
}

/** Corrects what was counted during the turn by the usage in its response. Some agents report none. */
export function takeTurnUsage(state: AcpState, result: Json): Step<AcpState> {
  const { counted } = state.turnUsage;
  const total = tokensIn(at(result, 'usage')) ?? quotaIn(result);
  const signals = total
    ? usageSignals({
        inputTokens: total.inputTokens - counted.inputTokens,
        outputTokens: total.outputTokens - counted.outputTokens,
        cachedTokens: total.cachedTokens - counted.cachedTokens,
        costUsd: null,
      })
    : [];
  return { state: { ...state, turnUsage: noTurnUsage }, signals };
}

/** Returns the cost since the last report. An agent that was killed restarts its total from zero. */
const costSince = (reportedCost: number, now: number): number =>
  now < reportedCost ? now : now - reportedCost;

const usageSignals = (usage: Usage): readonly Signal[] =>
  usage.inputTokens === 0 && usage.outputTokens === 0 && usage.costUsd === null
    ? []
    : [event({ type: 'usage', ...usage })];

function tokensIn(usage: Json | undefined): Usage | undefined {
  const outputTokens = numberAt(usage, 'outputTokens');
  const given = numberAt(usage, 'inputTokens');
  if (outputTokens === undefined || given === undefined) return undefined;
  // Agents differ in whether the input includes cached tokens; the total does.
  const total = numberAt(usage, 'totalTokens');
  return {
    inputTokens: total === undefined ? given : Math.max(given, total - outputTokens),
    outputTokens,
    cachedTokens: numberAt(usage, 'cachedReadTokens') ?? 0,
    costUsd: null,
  };
}

/** Returns the usage from the place where Gemini puts it. */
function quotaIn(result: Json): Usage | undefined {
  const quota = at(result, '_meta', 'quota', 'token_count');
  const outputTokens = numberAt(quota, 'output_tokens');
  const inputTokens = numberAt(quota, 'input_tokens');
  if (outputTokens === undefined || inputTokens === undefined) return undefined;
  return { inputTokens, outputTokens, cachedTokens: 0, costUsd: null };
}
