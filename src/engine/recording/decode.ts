import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import {
  type AgentEvent,
  type Cut,
  type HostQuestion,
  noUsage,
  type SessionResult,
} from '../../agents/session.ts';
import type { Json, JsonObject } from '../../core/json.ts';
import { fitting, invalid, type PlacedLine } from '../../effects/recording/json-lines.ts';
import { SessionMemory } from './encode.ts';
import { takeStates } from './recorded-states.ts';
import {
  answerSchema,
  cutSchema,
  eventSchemas,
  type headerSchema,
  questionSchema,
  resultSchema,
} from './schemas.ts';
import type { RecordedSession, SessionLine } from './session-file.ts';

type Header = Extract<z.infer<typeof headerSchema>, { kind: 'session' }>;

/** Puts back what the encoder left out. */
export function decodeSession(file: string, header: Header, lines: readonly PlacedLine[]): RecordedSession {
  const { rest, ...states } = takeStates(lines);
  const reader = new Reader();
  for (const line of rest) reader.take(line);
  const { role, task, n, order, agent, prompt, output_schema } = header;
  return {
    kind: 'session',
    file,
    role,
    task,
    n,
    // Written before anybody could know that it would reach a result.
    ...(reader.hasResult ? {} : { cut: header.cut ?? 0 }),
    order,
    agent,
    prompt,
    promptHash: header.prompt_hash,
    resumes: header.resume === true,
    ...(output_schema === undefined ? {} : { outputSchema: output_schema as JsonObject }),
    lines: reader.lines,
    ...(reader.result ? { result: reader.result } : {}),
    ...(reader.why ? { why: reader.why } : {}),
    ...states,
  };
}

class Reader {
  readonly lines: SessionLine[] = [];
  result: SessionResult | undefined;
  hasResult = false;
  why: Cut | undefined;
  readonly #memory = new SessionMemory();
  #hasUsage = false;

  take(line: PlacedLine): void {
    const { value } = line;
    if (this.result) throw invalid(line, 'comes after the end of the session');
    if ('question' in value) this.lines.push({ kind: 'question', question: this.#question(line) });
    else if ('answer' in value)
      this.lines.push({ kind: 'answer', answer: fitting(answerSchema, value['answer'], line) });
    else if ('result' in value) {
      this.#end(value['result'], line);
      this.hasResult = true;
      if (value['cut'] !== undefined) this.why = fitting(cutSchema, value['cut'], line);
    } else if ('interrupted' in value) this.#end(value['interrupted'], line);
    else this.#event(eventIn(line, this.#memory));
  }

  #event(event: AgentEvent): void {
    this.#memory.take(event);
    if (event.type === 'usage') this.#hasUsage = true;
    this.lines.push({ kind: 'event', event });
  }

  #question(line: PlacedLine): HostQuestion {
    const question = fitting(questionSchema, line.value['question'], line);
    return question.kind === 'limit' ? question : { ...question, ...wishOf(question, line, this.#memory) };
  }

  /** What ends every session is not written down: what it used in all, and that it is done. */
  #end(value: unknown, line: PlacedLine): void {
    const result = resultIn(value, line, this.#memory);
    this.result = result;
    if (!this.#hasUsage && !isDeepStrictEqual(result.usage, noUsage))
      this.#event({ type: 'usage', ...result.usage });
    this.#event({ type: 'done', outcome: result.kind });
  }
}

function eventIn(line: PlacedLine, memory: SessionMemory): AgentEvent {
  const { value } = line;
  const { text, thought, type } = value;
  if (typeof text === 'string' && type === undefined) return { type: 'text', text };
  if (typeof thought === 'string') return { type: 'thought', text: thought };
  const schema = Object.entries(eventSchemas).find(([name]) => name === type)?.[1];
  if (!schema) throw invalid(line, `is no line of a session: ${JSON.stringify(value).slice(0, 80)}`);
  const event = fitting<z.infer<(typeof eventSchemas)[keyof typeof eventSchemas]>>(schema, value, line);
  if (event.type === 'tool-end') return { ...event, id: endedTool(event, line, memory) };
  return event.type === 'permission' ? { ...event, ...wishOf(event, line, memory) } : event;
}

function endedTool(
  { id }: { readonly id?: string | undefined },
  line: PlacedLine,
  { toolId }: SessionMemory,
): string {
  const ended = id ?? toolId;
  if (ended === undefined) throw invalid(line, 'does not say which tool ended');
  return ended;
}

/** What is wished for; a line that does not say it means what the last one said. */
function wishOf(
  { tool, input }: { readonly tool?: string | undefined; readonly input?: Json | undefined },
  line: PlacedLine,
  { wish }: SessionMemory,
): NonNullable<SessionMemory['wish']> {
  if (tool !== undefined && input !== undefined) return { tool, input };
  if (wish) return wish;
  throw invalid(line, 'does not say for which tool');
}

function resultIn(value: unknown, line: PlacedLine, memory: SessionMemory): SessionResult {
  const { sessionId, usage, denials, ...rest } = fitting(resultSchema, value, line);
  const id = sessionId === undefined ? memory.sessionId : (sessionId ?? undefined);
  const soFar = {
    usage: usage ?? noUsage,
    denials: denials ?? [...memory.denials],
    ...(id === undefined ? {} : { sessionId: id }),
  };
  if (rest.kind !== 'ok') return { ...rest, ...soFar };
  const { kind, said, text, structured } = rest;
  const words = said === 'last' ? memory.lastText : said === 'all' ? memory.allText : text;
  return { kind, text: words ?? '', ...(structured === undefined ? {} : { structured }), ...soFar };
}
