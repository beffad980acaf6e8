import type { JsonObject } from '../core/json.ts';
import type { Verdict } from './driver/protocol.ts';
import { at, numberAt, textAt } from './json-line.ts';
import type { AgentEvent } from './session.ts';

/** An event as a program of the user prints it, in the shapes that we have ourselves; `undefined` if it is none. */
export function eventOf(message: JsonObject): AgentEvent | undefined {
  const text = textAt(message, 'text');
  const id = textAt(message, 'id');
  switch (message['type']) {
    case 'started': {
      const sessionId = textAt(message, 'sessionId');
      const model = textAt(message, 'model');
      return sessionId === undefined
        ? undefined
        : { type: 'started', sessionId, ...(model ? { model } : {}) };
    }
    case 'text':
      return text === undefined ? undefined : { type: 'text', text };
    case 'thought':
      return text === undefined ? undefined : { type: 'thought', text };
    case 'tool-start': {
      const name = textAt(message, 'name');
      if (id === undefined || name === undefined) return undefined;
      const title = textAt(message, 'title');
      return { type: 'tool-start', id, name, input: at(message, 'input') ?? {}, ...(title ? { title } : {}) };
    }
    case 'tool-end': {
      if (id === undefined) return undefined;
      const output = textAt(message, 'output');
      return { type: 'tool-end', id, ok: message['ok'] !== false, ...(output ? { output } : {}) };
    }
    case 'usage':
      return {
        type: 'usage',
        inputTokens: numberAt(message, 'inputTokens') ?? 0,
        outputTokens: numberAt(message, 'outputTokens') ?? 0,
        cachedTokens: numberAt(message, 'cachedTokens') ?? 0,
        costUsd: numberAt(message, 'costUsd') ?? null,
      };
    case 'retry': {
      const delayMs = numberAt(message, 'delayMs');
      return {
        type: 'retry',
        attempt: numberAt(message, 'attempt') ?? 1,
        reason: textAt(message, 'reason') ?? '',
        ...(delayMs === undefined ? {} : { delayMs }),
      };
    }
    default:
      return undefined;
  }
}

/** What a `{"type":"result"}` line of such a program says. */
export type ResultLine =
  | Extract<Verdict, { kind: 'ok' }>
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'limit'; readonly message: string; readonly resetsAt?: string | undefined };

/** `text`, `output` (data), `error` (a text, or a map with `message`), or `limit` (a map with `resetsAt`). */
export function resultOf(message: JsonObject): ResultLine | undefined {
  if (message['type'] !== 'result') return undefined;
  if (at(message, 'limit') !== undefined) {
    const resetsAt = textAt(message, 'limit', 'resetsAt');
    const reason = textAt(message, 'limit', 'reason') ?? 'the agent ran into a limit';
    return { kind: 'limit', message: reason, ...(resetsAt ? { resetsAt } : {}) };
  }
  const error = textAt(message, 'error') ?? textAt(message, 'error', 'message');
  const text = textAt(message, 'text') ?? textAt(message, 'result') ?? '';
  if (error !== undefined || message['is_error'] === true) return { kind: 'failed', message: error ?? text };
  const structured = at(message, 'output');
  return { kind: 'ok', text, ...(structured === undefined ? {} : { structured }) };
}
