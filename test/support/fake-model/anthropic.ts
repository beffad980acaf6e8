import { listAt, textAt } from '../../../src/agents/driver/protocol.ts';
import type { Json, JsonObject } from '../../../src/core/json.ts';
import type { Conversation, Failure, Part } from './script.ts';
import { type Answering, pieces, type ServerEvent } from './sse.ts';

/** Parses a request to `POST /v1/messages`. */
export const readMessages = (body: JsonObject): Conversation => ({
  system: textOf(body['system']),
  tools: listAt(body, 'tools').map(tool => ({ name: textAt(tool, 'name') ?? '', takesText: false })),
  turns: listAt(body, 'messages').map(message => ({
    role: textAt(message, 'role') === 'assistant' ? 'assistant' : 'user',
    text: textOf(typeof message === 'object' && message && 'content' in message ? message.content : ''),
  })),
});

const textOf = (content: Json | undefined): string =>
  typeof content === 'string'
    ? content
    : Array.isArray(content)
      ? content
          .flatMap(block => (textAt(block, 'type') === 'text' ? (textAt(block, 'text') ?? []) : []))
          .join('\n')
      : '';

export const messagesError = ({ message, status }: Failure): JsonObject => ({
  type: 'error',
  error: { type: errorTypes[status] ?? 'api_error', message },
});

const errorTypes: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  429: 'rate_limit_error',
  529: 'overloaded_error',
};

/** Events of a streamed answer. */
export function messageEvents(parts: readonly Part[], answering: Answering): readonly ServerEvent[] {
  const start = { type: 'message_start', message: message([], answering) } as const;
  const blocks = parts.map((part, index) => blockEvents(part, index, answering));
  if (answering.hangs) return [start, ...(blocks[0] ?? []).slice(0, 2)];
  const delta = {
    type: 'message_delta',
    delta: { stop_reason: stopReason(parts), stop_sequence: null },
    usage: { output_tokens: answering.usage.output },
  };
  return [start, ...blocks.flat(), delta, { type: 'message_stop' }];
}

/** Answer to a request that does not stream. */
export const wholeMessage = (parts: readonly Part[], answering: Answering): JsonObject => ({
  ...message(
    parts.map((part, index) => blockOf(part, index, answering)),
    answering,
  ),
  stop_reason: stopReason(parts),
});

const message = (content: readonly Json[], { id, model, usage }: Answering): JsonObject => ({
  id: `msg_${id}`,
  type: 'message',
  role: 'assistant',
  model,
  content: [...content],
  stop_reason: null,
  stop_sequence: null,
  usage: {
    input_tokens: usage.input,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: usage.output,
  },
});

const stopReason = (parts: readonly Part[]): string =>
  parts.some(({ kind }) => kind === 'call') ? 'tool_use' : 'end_turn';

function blockOf(part: Part, index: number, { id }: Answering): JsonObject {
  switch (part.kind) {
    case 'text':
      return { type: 'text', text: part.text };
    case 'thought':
      return { type: 'thinking', thinking: part.text, signature: 'c2lnbmVk' };
    case 'call':
      return { type: 'tool_use', id: `toolu_${id}_${index}`, name: part.name, input: part.input };
  }
}

function blockEvents(part: Part, index: number, answering: Answering): readonly ServerEvent[] {
  const block = blockOf(part, index, answering);
  const start = (content_block: JsonObject): ServerEvent => ({
    type: 'content_block_start',
    index,
    content_block,
  });
  const delta = (given: JsonObject): ServerEvent => ({ type: 'content_block_delta', index, delta: given });
  const stop: ServerEvent = { type: 'content_block_stop', index };
  switch (part.kind) {
    case 'text':
      return [
        start({ ...block, text: '' }),
        ...pieces(part.text).map(text => delta({ type: 'text_delta', text })),
        stop,
      ];
    case 'thought':
      return [
        start({ ...block, thinking: '', signature: '' }),
        delta({ type: 'thinking_delta', thinking: part.text }),
        delta({ type: 'signature_delta', signature: 'c2lnbmVk' }),
        stop,
      ];
    case 'call':
      return [
        start({ ...block, input: {} }),
        ...pieces(JSON.stringify(part.input)).map(text =>
          delta({ type: 'input_json_delta', partial_json: text }),
        ),
        stop,
      ];
  }
}
