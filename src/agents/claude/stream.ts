import { type ErrorData, isJsonObject, type Json, type JsonObject } from '../../core/index.ts';
import { failed, reportedFailure } from '../driver/failures.ts';
import {
  type AgentVerdict,
  at,
  event,
  listAt,
  numberAt,
  own,
  type ProtocolContext,
  rawEvent,
  type Signal,
  type Step,
  textAt,
  verdict,
} from '../driver/protocol.ts';
import {
  type AgentEvent,
  addUsage,
  noUsage,
  priced,
  type SessionRequest,
  type Usage,
  usageSince,
} from '../session.ts';
import type { ClaudeState } from './claude.ts';

interface StreamMessage {
  readonly message: JsonObject;
  readonly line: string;
}

/** Turns progress messages into events. Unknown messages become raw events. */
export function claudeEvents(state: ClaudeState, taken: StreamMessage): Step<ClaudeState> {
  const { message, line } = taken;
  const emit = (...events: readonly AgentEvent[]) => ({ state, signals: events.map(event) });
  switch (message['type']) {
    case 'system':
      return systemStep(state, taken);
    case 'assistant': {
      const counted = countMessage(state, message);
      const events = assistantEvents(message, line).map(event);
      return { state: counted.state, signals: [...counted.signals, ...events] };
    }
    case 'user':
      return {
        // Claude Code tells the model about finished tasks together with the next tool results.
        state: isOfSubagent(message) ? state : { ...state, isNotified: false },
        signals: userEvents(message, line).map(event),
      };
    case 'stream_event':
    case 'keep_alive':
    case 'tool_progress':
      return emit();
    default:
      return emit(rawEvent(line));
  }
}

function systemStep(state: ClaudeState, { message, line }: StreamMessage): Step<ClaudeState> {
  const emit = (...events: readonly AgentEvent[]) => ({ state, signals: events.map(event) });
  switch (message['subtype']) {
    case 'init':
      return takeInit(state, message);
    case 'permission_denied': {
      const tool = textAt(message, 'tool_name') ?? '';
      const reason = textAt(message, 'message') ?? `${tool} was denied by Claude Code itself.`;
      const id = textAt(message, 'tool_use_id') ?? '';
      return emit({ type: 'permission', id, tool, input: null, decision: { kind: 'deny', message: reason } });
    }
    case 'api_retry': {
      const status = numberAt(message, 'error_status');
      const reason = textAt(message, 'error') ?? 'the model did not answer';
      return emit({
        type: 'retry',
        attempt: numberAt(message, 'attempt') ?? 1,
        reason: status === undefined ? reason : `${reason} (HTTP ${status})`,
        ...delay(numberAt(message, 'retry_delay_ms')),
      });
    }
    case 'background_tasks_changed':
      return { state: { ...state, hasTasks: listAt(message, 'tasks').length > 0 }, signals: [] };
    case 'task_notification':
      return { state: { ...state, isNotified: true }, signals: [] };
    case 'task_started':
    case 'task_progress':
    case 'task_updated':
    case 'status':
    case 'thinking_tokens':
    case 'informational':
    case 'ui_invalidate':
      return emit();
    default:
      return emit(rawEvent(line));
  }
}

const delay = (delayMs: number | undefined) => (delayMs === undefined ? {} : { delayMs });

/** Reports the start of a session once, although `init` is repeated every turn. */
function takeInit(before: ClaudeState, message: JsonObject): Step<ClaudeState> {
  const state = { ...before, isNotified: false };
  const sessionId = textAt(message, 'session_id');
  if (sessionId === undefined || sessionId === state.sessionId) return { state, signals: [] };
  const model = textAt(message, 'model');
  const cwd = textAt(message, 'cwd');
  const started = {
    type: 'started',
    sessionId,
    ...(model ? { model } : {}),
    ...(cwd ? { cwd } : {}),
  } as const;
  return { state: { ...state, sessionId }, signals: [event(started)] };
}

function assistantEvents(message: JsonObject, line: string): readonly AgentEvent[] {
  // Claude Code reports a failed API request as an assistant message, and again in the result.
  if (message['is_api_error_message'] === true) return [rawEvent(line)];
  const isThought = isOfSubagent(message);
  return listAt(message, 'message', 'content').flatMap((block): readonly AgentEvent[] => {
    switch (textAt(block, 'type')) {
      case 'text': {
        const text = textAt(block, 'text') ?? '';
        return [isThought ? { type: 'thought', text } : { type: 'text', text }];
      }
      case 'thinking':
        return [{ type: 'thought', text: textAt(block, 'thinking') ?? '' }];
      case 'tool_use':
        return [toolStart(block)];
      default:
        return [rawEvent(line)];
    }
  });
}

const isOfSubagent = (message: JsonObject): boolean => typeof message['parent_tool_use_id'] === 'string';

function toolStart(block: Json): AgentEvent {
  const input = typeof block === 'object' && block !== null && 'input' in block ? (block.input ?? {}) : {};
  return { type: 'tool-start', id: textAt(block, 'id') ?? '', name: textAt(block, 'name') ?? '', input };
}

function userEvents(message: JsonObject, line: string): readonly AgentEvent[] {
  if (message['isReplay'] === true) return [];
  const results = listAt(message, 'message', 'content').filter(
    block => textAt(block, 'type') === 'tool_result',
  );
  if (results.length === 0) return [rawEvent(line)];
  return results.map(block => {
    const isError =
      typeof block === 'object' && block !== null && 'is_error' in block && block.is_error === true;
    const output = contentText(block);
    return {
      type: 'tool-end',
      id: textAt(block, 'tool_use_id') ?? '',
      ok: !isError,
      ...(output === '' ? {} : { output }),
    };
  });
}

const contentText = (block: Json): string =>
  textAt(block, 'content') ??
  listAt(block, 'content')
    .flatMap(part => textAt(part, 'text') ?? [])
    .join('\n');

/** Time that background work may take without any output, after which the last answer counts. */
const backgroundSilenceMs = 10 * 60_000;
/** Time in which Claude Code begins the turn that reports finished background work. */
const notificationSilenceMs = 30_000;

/**
 * Handles the last line of a turn. Only `is_error` indicates a failure; the exit code and `subtype: success` do not.
 * While background tasks run or have just finished, Claude Code begins another turn by itself.
 */
export function claudeResult(
  before: ClaudeState,
  message: JsonObject,
  { request, now }: ProtocolContext,
): Step<ClaudeState> {
  const { state, signal } = takeResultUsage(before, message, request);
  const isOverBudget =
    textAt(message, 'subtype') === 'error_max_budget_usd' && request.budget?.costUsd !== undefined;
  const reached = isOverBudget ? failed(overBudget) : verdictOf(state, message, now());
  const silenceMs = state.hasTasks
    ? backgroundSilenceMs
    : state.isNotified
      ? notificationSilenceMs
      : undefined;
  if (reached.kind !== 'ok' || silenceMs === undefined)
    return { state: { ...state, held: undefined }, signals: [signal, verdict(reached)] };
  return {
    state: { ...state, held: reached },
    signals: [signal, { kind: 'hold', verdict: reached, silenceMs }],
  };
}

function verdictOf(state: ClaudeState, message: JsonObject, now: number): AgentVerdict {
  const reason = textAt(message, 'terminal_reason') ?? '';
  if (reason.startsWith('aborted') || (reason === 'hook_stopped' && state.isSuspending))
    return { kind: 'stopped' };
  if (reason === 'hook_stopped' || reason === 'tool_deferred') return failed(stoppedByHook);
  const text = textAt(message, 'result') ?? '';
  if (message['is_error'] === false) {
    const structured = at(message, 'structured_output') ?? state.held?.structured;
    return { kind: 'ok', text, ...(structured === undefined ? {} : { structured }) };
  }
  const errors = listAt(message, 'errors').filter(error => typeof error === 'string');
  const subtype = textAt(message, 'subtype');
  const said = text || errors.join('\n') || subtype || 'claude failed without giving a reason';
  if (subtype === 'error_max_structured_output_retries') return failed(outputInvalid(said));
  return reportedFailure({
    kind: 'claude',
    message: said,
    status: numberAt(message, 'api_error_status'),
    resetsAt: state.resetsAt,
    hint: own(hints, reason),
    now,
  });
}

const overBudget: ErrorData = {
  code: 'BUDGET_EXCEEDED',
  message: 'the budget is exhausted: the agent spent all that was left',
  hint: 'raise `budget`, or make the step smaller; its work so far is kept in the workspace',
};

const stoppedByHook: ErrorData = {
  code: 'AGENT_FAILED',
  message: 'a hook of the project stopped the agent before it was done',
  hint: 'change the hook in the settings of Claude Code, or make it continue in unattended sessions',
};

const hints: Readonly<Record<string, string | undefined>> = {
  max_turns: 'allow more turns, or make the step smaller',
  budget_exhausted: 'raise the budget under `args` of the agent',
  prompt_too_long: 'make the prompt shorter, or split the step',
};

const outputInvalid = (message: string): ErrorData => ({
  code: 'OUTPUT_INVALID',
  message,
  hint: 'simplify the output schema, or describe the expected answer in the prompt',
});

/**
 * Counts a message of the model when its first line appears, so that a budget is enforced during a turn. Every block of
 * a message repeats its usage, whose output is still incomplete. The cost follows with the result.
 */
function countMessage(state: ClaudeState, message: JsonObject): Step<ClaudeState> {
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
function takeResultUsage(
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
