import { at, listAt, textAt } from '../../../src/agents/driver/protocol.ts';
import type { Json, JsonObject } from '../../../src/core/json.ts';
import type { Conversation, ConversationTurn, Failure, OfferedTool, Part } from './script.ts';
import { type Answering, pieces, type ServerEvent } from './sse.ts';

/** Parses a request to `POST /v1/responses`. */
export function readResponses(body: JsonObject): Conversation {
  const input = listAt(body, 'input');
  const added = input.filter(item => textAt(item, 'type') === 'additional_tools');
  return {
    system: textAt(body, 'instructions') ?? '',
    tools: [...listAt(body, 'tools'), ...added.flatMap(item => listAt(item, 'tools'))].flatMap(toolsIn),
    turns: mergeAnswers(input.flatMap(turnOf)),
  };
}

function toolsIn(tool: Json): readonly OfferedTool[] {
  const name = textAt(tool, 'name') ?? textAt(tool, 'type') ?? '';
  const inner = listAt(tool, 'tools');
  if (inner.length > 0) return inner.flatMap(toolsIn).map(offered => ({ ...offered, namespace: name }));
  return [{ name, takesText: textAt(tool, 'type') === 'custom' }];
}

function turnOf(item: Json): readonly ConversationTurn[] {
  const type = textAt(item, 'type') ?? 'message';
  if (type === 'message') {
    const role = textAt(item, 'role') === 'assistant' ? 'assistant' : 'user';
    return [{ role, text: textAt(item, 'content') ?? joined(listAt(item, 'content')) }];
  }
  if (type.endsWith('_call') || type === 'reasoning') return [{ role: 'assistant', text: '' }];
  return type.endsWith('_output') ? [{ role: 'user', text: '' }] : [];
}

const joined = (content: readonly Json[]): string =>
  content.flatMap(part => textAt(part, 'text') ?? []).join('\n');

/** Merges consecutive items of the model, which are one answer, into one turn. */
const mergeAnswers = (turns: readonly ConversationTurn[]): readonly ConversationTurn[] =>
  turns.filter(({ role }, i) => role === 'user' || turns[i - 1]?.role !== 'assistant');

export function responsesError({ message, status, resetsInS }: Failure): JsonObject {
  if (resetsInS === undefined)
    return { error: { type: status === 429 ? 'rate_limit_exceeded' : 'server_error', message } };
  const resets_at = Math.floor(Date.now() / 1000) + resetsInS;
  return { error: { type: 'usage_limit_reached', message, plan_type: 'pro', resets_at } };
}

/** Events of a streamed answer. */
export function responseEvents(parts: readonly Part[], answering: Answering): readonly ServerEvent[] {
  const { id, model, usage, hangs } = answering;
  const items = parts.map((part, index) => itemOf(part, `${id}_${index}`));
  const response = { id: `resp_${id}`, object: 'response', created_at: 0, model, output: [] };
  const created = { type: 'response.created', response: { ...response, status: 'in_progress' } };
  const streamed = items.map(itemEvents);
  if (hangs) return [created, ...(streamed[0] ?? []).slice(0, 2)];
  const completed = {
    ...response,
    status: 'completed',
    output: items,
    usage: {
      input_tokens: usage.input,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: usage.output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: usage.input + usage.output,
    },
  };
  return [created, ...streamed.flat(), { type: 'response.completed', response: completed }];
}

function itemOf(part: Part, id: string): JsonObject {
  switch (part.kind) {
    case 'text': {
      const content = [{ type: 'output_text', text: part.text, annotations: [] }];
      return { type: 'message', id: `msg_${id}`, role: 'assistant', status: 'completed', content };
    }
    case 'thought':
      return { type: 'reasoning', id: `rs_${id}`, summary: [{ type: 'summary_text', text: part.text }] };
    case 'call': {
      const { name, input, namespace } = part;
      const call = { id: `call_${id}`, call_id: `call_${id}`, name, status: 'completed' };
      if (typeof input === 'string') return { type: 'custom_tool_call', ...call, input };
      const space = namespace === undefined ? {} : { namespace };
      return { type: 'function_call', ...call, ...space, arguments: JSON.stringify(input) };
    }
  }
}

function itemEvents(item: JsonObject, output_index: number): readonly ServerEvent[] {
  const text = textAt(listAt(item, 'content')[0], 'text');
  const started = { ...item, status: 'in_progress', ...(text === undefined ? {} : { content: [] }) };
  const deltas = text === undefined ? [] : pieces(text);
  return [
    { type: 'response.output_item.added', output_index, item: started },
    ...deltas.map(delta => ({
      type: 'response.output_text.delta',
      item_id: at(item, 'id') ?? '',
      output_index,
      content_index: 0,
      delta,
    })),
    { type: 'response.output_item.done', output_index, item },
  ];
}
