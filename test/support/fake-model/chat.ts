import { listAt, textAt } from '../../../src/agents/driver/protocol.ts';
import type { Json, JsonObject } from '../../../src/core/json.ts';
import type { Conversation, Failure, Part } from './script.ts';
import { type Answering, pieces, type ServerEvent } from './sse.ts';

/** Reads a request to `POST /v1/chat/completions`. */
export const readChat = (body: JsonObject): Conversation => ({
  system: listAt(body, 'messages')
    .filter(message => textAt(message, 'role') === 'system')
    .map(textOf)
    .join('\n'),
  tools: listAt(body, 'tools').map(tool => ({
    name: textAt(tool, 'function', 'name') ?? '',
    takesText: false,
  })),
  turns: listAt(body, 'messages')
    .filter(message => textAt(message, 'role') !== 'system')
    .map(message => ({
      role: textAt(message, 'role') === 'assistant' ? 'assistant' : 'user',
      text: textOf(message),
    })),
});

const textOf = (message: Json): string =>
  textAt(message, 'content') ??
  listAt(message, 'content')
    .flatMap(part => textAt(part, 'text') ?? [])
    .join('\n');

export const chatError = ({ message, status }: Failure): JsonObject => ({
  error: { type: status === 401 ? 'authentication_error' : 'server_error', message },
});

/** Returns the answer as it is streamed. */
export function chatEvents(parts: readonly Part[], answering: Answering): readonly ServerEvent[] {
  const chunk = (delta: JsonObject, finish_reason: string | null = null): ServerEvent => ({
    ...base(answering, 'chat.completion.chunk'),
    choices: [{ index: 0, delta, finish_reason }],
  });
  const texts = pieces(textIn(parts)).map(content => chunk({ content }));
  const begin = chunk({ role: 'assistant', content: '' });
  if (answering.hangs) return [begin, ...texts.slice(0, 1)];
  const tool_calls = callsIn(parts, answering);
  return [
    begin,
    ...texts,
    ...(tool_calls.length > 0 ? [chunk({ tool_calls })] : []),
    chunk({}, finishReason(parts)),
    { ...base(answering, 'chat.completion.chunk'), choices: [], usage: usageOf(answering) },
  ];
}

/** Returns the answer as a whole, for requests that do not stream. */
export const wholeChat = (parts: readonly Part[], answering: Answering): JsonObject => {
  const tool_calls = callsIn(parts, answering);
  const calls = tool_calls.length > 0 ? { tool_calls } : {};
  const message = { role: 'assistant', content: textIn(parts), ...calls };
  return {
    ...base(answering, 'chat.completion'),
    choices: [{ index: 0, message, finish_reason: finishReason(parts) }],
    usage: usageOf(answering),
  };
};

const base = ({ id, model }: Answering, object: string) => ({
  id: `chatcmpl_${id}`,
  object,
  created: 0,
  model,
});

const textIn = (parts: readonly Part[]): string =>
  parts.flatMap(part => (part.kind === 'text' ? part.text : [])).join('');

const callsIn = (parts: readonly Part[], { id }: Answering) =>
  parts
    .flatMap(part => (part.kind === 'call' ? part : []))
    .map(({ name, input }, index) => ({
      index,
      id: `call_${id}_${index}`,
      type: 'function',
      function: { name, arguments: JSON.stringify(input) },
    }));

const finishReason = (parts: readonly Part[]): string =>
  parts.some(({ kind }) => kind === 'call') ? 'tool_calls' : 'stop';

const usageOf = ({ usage: { input, output } }: Answering) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
});
