import type { Json, JsonObject } from '../../core/json.ts';
import { event, type Step } from '../driver/protocol.ts';
import { listAt, numberAt, rawEvent, textAt } from '../json-line.ts';
import type { AgentEvent } from '../session.ts';
import type { ClaudeState } from './claude.ts';

interface Taken {
  readonly message: JsonObject;
  readonly line: string;
}

/** Lines that only tell what happens. What nobody knows is handed on as it is. */
export function claudeEvents(state: ClaudeState, taken: Taken): Step<ClaudeState> {
  const { message, line } = taken;
  const tell = (...events: readonly AgentEvent[]) => ({ state, signals: events.map(event) });
  switch (message['type']) {
    case 'system':
      return systemStep(state, taken);
    case 'assistant':
      return tell(...assistantEvents(message, line));
    case 'user':
      return tell(...userEvents(message, line));
    case 'stream_event':
    case 'keep_alive':
    case 'tool_progress':
      return tell();
    default:
      return tell(rawEvent(line));
  }
}

function systemStep(state: ClaudeState, { message, line }: Taken): Step<ClaudeState> {
  const tell = (...events: readonly AgentEvent[]) => ({ state, signals: events.map(event) });
  switch (message['subtype']) {
    case 'init':
      return takeInit(state, message);
    case 'permission_denied': {
      const tool = textAt(message, 'tool_name') ?? '';
      const reason = textAt(message, 'message') ?? `${tool} was denied by claude itself.`;
      const id = textAt(message, 'tool_use_id') ?? '';
      return tell({ type: 'permission', id, tool, input: null, decision: { kind: 'deny', message: reason } });
    }
    case 'api_retry': {
      const status = numberAt(message, 'error_status');
      const reason = textAt(message, 'error') ?? 'the model did not answer';
      return tell({
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
      return tell();
    default:
      return tell(rawEvent(line));
  }
}

const delay = (delayMs: number | undefined) => (delayMs === undefined ? {} : { delayMs });

/** It comes again with every turn. */
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
  // A failed request is put into the words of the assistant; the result says it again.
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
