import { listAt, textAt } from '../../../src/agents/driver/protocol.ts';
import type { Json, JsonObject } from '../../../src/core/json.ts';
import type { Conversation, Failure, Part } from './script.ts';
import { type Answering, pieces, type ServerEvent } from './sse.ts';

/** Reads a request to `POST /v1beta/models/<model>:generateContent`. */
export const readGemini = (body: JsonObject): Conversation => ({
  system: textOf(body['systemInstruction'] ?? null),
  tools: listAt(body, 'tools')
    .flatMap(tool => listAt(tool, 'functionDeclarations'))
    .map(tool => ({ name: textAt(tool, 'name') ?? '', takesText: false })),
  turns: listAt(body, 'contents').map(content => ({
    role: textAt(content, 'role') === 'model' ? 'assistant' : 'user',
    text: textOf(content),
  })),
});

const textOf = (content: Json): string =>
  listAt(content, 'parts')
    .flatMap(part => textAt(part, 'text') ?? [])
    .join('\n');

export const geminiError = ({ message, status }: Failure): JsonObject => ({
  error: { code: status, message, status: status === 429 ? 'RESOURCE_EXHAUSTED' : 'INTERNAL' },
});

/** Returns the answer as it is streamed. */
export function geminiEvents(parts: readonly Part[], answering: Answering): readonly ServerEvent[] {
  const chunks = parts.flatMap(part =>
    part.kind === 'text' ? pieces(part.text).map(text => ({ text })) : [partOf(part)],
  );
  if (answering.hangs) return chunks.slice(0, 1).map(part => response([part], answering));
  return [...chunks.map(part => response([part], answering)), response([{ text: '' }], answering, 'STOP')];
}

/** Returns the answer as a whole, for requests that do not stream. */
export const wholeGemini = (parts: readonly Part[], answering: Answering): JsonObject =>
  response(parts.map(partOf), answering, 'STOP');

function partOf(part: Part): JsonObject {
  switch (part.kind) {
    case 'text':
      return { text: part.text };
    case 'thought':
      return { text: part.text, thought: true };
    case 'call':
      return { functionCall: { name: part.name, args: part.input } };
  }
}

const response = (
  parts: readonly JsonObject[],
  { id, model, usage: { input, output } }: Answering,
  finishReason?: string,
): JsonObject => ({
  candidates: [
    { content: { role: 'model', parts: [...parts] }, index: 0, ...(finishReason ? { finishReason } : {}) },
  ],
  modelVersion: model,
  responseId: `resp_${id}`,
  usageMetadata: {
    promptTokenCount: input,
    candidatesTokenCount: output,
    totalTokenCount: input + output,
  },
});
