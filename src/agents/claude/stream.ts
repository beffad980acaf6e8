import { type ErrorData, isJsonObject, type Json, type JsonObject } from '../../core/index.ts';
import { failed, reportedFailure } from '../driver/failures.ts';
import {
  type AgentVerdict,
  at,
  event,
  listAt,
  numberAt,
  own,
  rawEvent,
  type Step,
  textAt,
  verdict,
} from '../driver/protocol.ts';
import type { AgentEvent, Usage } from '../session.ts';
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
    case 'assistant':
      return emit(...assistantEvents(message, line));
    case 'user':
      return emit(...userEvents(message, line));
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
function takeInit(state: ClaudeState, message: JsonObject): Step<ClaudeState> {
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
  const isOfSubagent = typeof message['parent_tool_use_id'] === 'string';
  return listAt(message, 'message', 'content').flatMap((block): readonly AgentEvent[] => {
    switch (textAt(block, 'type')) {
      case 'text': {
        const text = textAt(block, 'text') ?? '';
        return [isOfSubagent ? { type: 'thought', text } : { type: 'text', text }];
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

/**
 * Handles the last line of a turn. Only `is_error` indicates a failure; the exit code and `subtype: success` do not.
 * The reported usage covers the turn, but the reported cost covers the whole session as far as Claude Code knows it.
 */
export function claudeResult(state: ClaudeState, message: JsonObject, now: number): Step<ClaudeState> {
  const usage = usageOf(message);
  const costSoFar = numberAt(message, 'total_cost_usd');
  const known = state.costUsd + costBefore(state.before, message, usage);
  const costUsd = costSoFar === undefined ? null : Math.max(0, costSoFar - known);
  return {
    state: { ...state, costUsd: costSoFar ?? state.costUsd, before: undefined },
    signals: [event({ type: 'usage', ...usage, costUsd }), verdict(verdictOf(state, message, now))],
  };
}

/**
 * Returns the part of the reported cost that precedes this process. Claude Code continues from the saved cost if the
 * last process exited by itself, from zero if it was killed, and from a value in between if another process overwrote
 * the shared settings. The reported tokens tell how much of the earlier usage is included.
 */
function costBefore(before: Usage | undefined, message: JsonObject, turn: Omit<Usage, 'costUsd'>): number {
  if (!before || tokensOf(before) === 0) return 0;
  const models = at(message, 'modelUsage');
  const counted = Object.values(isJsonObject(models) ? models : {}).reduce<number>(
    (sum, model) => sum + modelTokens.reduce((tokens, name) => tokens + (numberAt(model, name) ?? 0), 0),
    0,
  );
  const share = (counted - tokensOf(turn)) / tokensOf(before);
  return (before.costUsd ?? 0) * Math.min(1, Math.max(0, share));
}

const modelTokens = ['inputTokens', 'outputTokens', 'cacheReadInputTokens', 'cacheCreationInputTokens'];

const tokensOf = ({ inputTokens, outputTokens }: Omit<Usage, 'costUsd'>): number =>
  inputTokens + outputTokens;

function usageOf(message: JsonObject): Omit<Usage, 'costUsd'> {
  const count = (name: string) => numberAt(message, 'usage', name) ?? 0;
  const cachedTokens = count('cache_read_input_tokens');
  return {
    inputTokens: count('input_tokens') + count('cache_creation_input_tokens') + cachedTokens,
    outputTokens: count('output_tokens'),
    cachedTokens,
  };
}

function verdictOf(state: ClaudeState, message: JsonObject, now: number): AgentVerdict {
  const reason = textAt(message, 'terminal_reason') ?? '';
  if (reason.startsWith('aborted')) return { kind: 'stopped' };
  const text = textAt(message, 'result') ?? '';
  if (message['is_error'] === false) {
    const structured = at(message, 'structured_output');
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
