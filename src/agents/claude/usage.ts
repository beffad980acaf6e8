import { isJsonObject, type Json, type JsonObject } from '../../core/index.ts';
import { at, event, numberAt, type Signal, type Step, textAt } from '../driver/protocol.ts';
import { addUsage, noUsage, priced, type SessionRequest, type Usage, usageSince } from '../session.ts';
import type { ClaudeState } from './claude.ts';

/**
 * Counts a message of the model when its first line appears, so that a budget is enforced during a turn. Every block of
 * a message repeats its usage, whose output is still incomplete. The cost follows with the result.
 */
export function countMessage(state: ClaudeState, message: JsonObject): Step<ClaudeState> {
  const id = textAt(message, 'message', 'id');
  if (id === undefined || state.countedMessages.includes(id)) return { state, signals: [] };
  const usage = apiUsage(at(message, 'message', 'usage'));
  if (tokensOf(usage) === 0) return { state, signals: [] };
  return {
    state: {
      ...state,
      countedMessages: [...state.countedMessages, id],
      counted: addUsage(state.counted, usage),
    },
    signals: [event({ type: 'usage', ...usage })],
  };
}

/**
 * Reports the usage of a turn that its messages did not. The reported cost covers the whole session as far as Claude
 * Code knows it.
 */
export function takeResultUsage(
  state: ClaudeState,
  message: JsonObject,
  { agent }: SessionRequest,
): { readonly state: ClaudeState; readonly signal: Signal } {
  const modelsUsed = modelUsage(at(message, 'modelUsage'));
  const turn = usageOfTurn(state, message, modelsUsed);
  const costSoFar = numberAt(message, 'total_cost_usd');
  const known = state.costUsd + costBefore(state.before, tokensOf(modelsUsed ?? noUsage) - tokensOf(turn));
  const costUsd =
    costSoFar === undefined ? priced(turn, agent.price).costUsd : Math.max(0, costSoFar - known);
  return {
    state: {
      ...state,
      costUsd: costSoFar ?? state.costUsd,
      before: undefined,
      modelsUsed: modelsUsed ?? state.modelsUsed,
      counted: noUsage,
      countedMessages: [],
    },
    signal: event({ type: 'usage', ...usageSince(state.counted, turn), costUsd }),
  };
}

/** Returns the usage since the last result. `usage` covers only the main agent, so subagents are read per model. */
function usageOfTurn(state: ClaudeState, message: JsonObject, modelsUsed: Usage | undefined): Usage {
  const sinceResult = modelUsage(at(message, 'model_usage_since_last_result'));
  if (sinceResult) return sinceResult;
  // The totals of a resumed session may include its earlier processes.
  if (modelsUsed && !state.before) return usageSince(state.modelsUsed, modelsUsed);
  return apiUsage(at(message, 'usage'));
}

/**
 * Returns the part of the reported cost that precedes this process. Claude Code continues from the saved cost if the
 * last process exited by itself, from zero if it was killed, and from a value in between if another process overwrote
 * the shared settings. The reported tokens of earlier turns tell how much of the earlier usage is included.
 */
function costBefore(before: Usage | undefined, earlierTokens: number): number {
  if (!before || tokensOf(before) === 0) return 0;
  const share = earlierTokens / tokensOf(before);
  return (before.costUsd ?? 0) * Math.min(1, Math.max(0, share));
}

const tokensOf = ({ inputTokens, outputTokens }: Usage): number => inputTokens + outputTokens;

function apiUsage(usage: Json | undefined): Usage {
  const count = (name: string) => numberAt(usage, name) ?? 0;
  const cachedTokens = count('cache_read_input_tokens');
  return {
    inputTokens: count('input_tokens') + count('cache_creation_input_tokens') + cachedTokens,
    outputTokens: count('output_tokens'),
    cachedTokens,
    costUsd: null,
  };
}

/** Adds up the usage of all models, or returns `undefined` if none is reported. */
function modelUsage(models: Json | undefined): Usage | undefined {
  if (!isJsonObject(models) || Object.keys(models).length === 0) return undefined;
  return Object.values(models).reduce<Usage>((sum, model) => {
    const count = (name: string) => numberAt(model, name) ?? 0;
    const cachedTokens = count('cacheReadInputTokens');
    return addUsage(sum, {
      inputTokens: count('inputTokens') + count('cacheCreationInputTokens') + cachedTokens,
      outputTokens: count('outputTokens'),
      cachedTokens,
      costUsd: null,
    });
  }, noUsage);
}
