import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import {
  type AgentEvent,
  type HostQuestion,
  noUsage,
  type ScriptStep,
  type SessionCut,
  type SessionResult,
} from '../../agents/index.ts';
import { isJsonObject, type Json, type JsonObject, RepriseError } from '../../core/index.ts';
import { fitting, invalid, type PlacedLine, readLines } from '../../effects/recording/index.ts';
import type { WorktreeState } from '../../git/delta/index.ts';
import type { ShellEnd } from '../../process/index.ts';
import { linesOf, SessionMemory, textOfTail } from './encode.ts';
import { putTextsBack, type ReadBlob } from './long-texts.ts';
import {
  answerSchema,
  changedStateSchema,
  cutSchema,
  endSchema,
  eventSchemas,
  headerSchema,
  numberSchema,
  questionSchema,
  resultSchema,
  sha256Schema,
  stateSchema,
} from './schemas.ts';
import {
  type OutputText,
  type RecordedSession,
  type RecordedShell,
  type SessionFile,
  type SessionLine,
  sessionFormat,
  type WrittenSession,
} from './session-file.ts';

type Header = Extract<z.infer<typeof headerSchema>, { kind: 'session' }>;

/** Restores the parts that the encoder omitted. */
function decodeSession(file: string, header: Header, lines: readonly PlacedLine[]): RecordedSession {
  const { rest, ...states } = takeStates(lines);
  const reader = new SessionReader();
  for (const line of rest) reader.take(line);
  const { role, task, n, order, agent, prompt, next_key, output_schema } = header;
  return {
    kind: 'session',
    file,
    role,
    task,
    n,
    // The header was written before it was known whether the session would reach a result.
    ...(reader.hasResult ? {} : { cut: header.cut ?? 0 }),
    order,
    agent,
    prompt,
    promptHash: header.prompt_hash,
    resumes: header.resume === true,
    ...(next_key === undefined ? {} : { nextKey: next_key }),
    ...(output_schema === undefined ? {} : { outputSchema: output_schema as JsonObject }),
    lines: reader.lines,
    ...(reader.result ? { result: reader.result } : {}),
    ...(reader.why ? { why: reader.why } : {}),
    ...states,
  };
}

class SessionReader {
  readonly lines: SessionLine[] = [];
  result: SessionResult | undefined;
  hasResult = false;
  why: SessionCut | undefined;
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

  /** Adds the events that end every session and are not recorded: its total usage and `done`. */
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
  if (!schema) throw invalid(line, `is not a valid line of a session: ${JSON.stringify(value).slice(0, 80)}`);
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
  if (ended === undefined) throw invalid(line, 'must name the tool that ended');
  return ended;
}

/** Returns the tool and input of a request. A line without them repeats those of the line before. */
function wishOf(
  { tool, input }: { readonly tool?: string | undefined; readonly input?: Json | undefined },
  line: PlacedLine,
  { wish }: SessionMemory,
): NonNullable<SessionMemory['wish']> {
  if (tool !== undefined && input !== undefined) return { tool, input };
  if (wish) return wish;
  throw invalid(line, 'must name its tool');
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

type ShellDecoderHeader = Extract<z.infer<typeof headerSchema>, { kind: 'shell' }>;

function decodeShell(file: string, header: ShellDecoderHeader, lines: readonly PlacedLine[]): RecordedShell {
  const { rest, ...states } = takeStates(lines);
  const output: OutputText[] = [];
  let end: ShellEnd | undefined;
  let isInterrupted = true;
  for (const line of rest) {
    const { out, err, end: ended } = line.value;
    if (end) throw invalid(line, 'comes after the end of the script');
    if (typeof out === 'string') add(output, { stream: 'stdout', text: out });
    else if (typeof err === 'string') add(output, { stream: 'stderr', text: err });
    else if (ended !== undefined) {
      end = endIn(ended, line, output);
      isInterrupted = line.value['interrupted'] === true;
    } else throw invalid(line, `is not a valid line of a script: ${JSON.stringify(line.value).slice(0, 80)}`);
  }
  const { role, task, n, order, command, what } = header;
  return {
    kind: 'shell',
    file,
    role,
    task,
    n,
    ...(isInterrupted ? { cut: header.cut ?? 0 } : {}),
    order,
    command,
    ...(what === undefined ? {} : { what }),
    output,
    ...(end ? { end } : {}),
    ...states,
  };
}

/** Joins consecutive output of the same stream into one string. */
function add(output: OutputText[], next: OutputText): void {
  const last = output.at(-1);
  if (last?.stream !== next.stream) output.push(next);
  else output.splice(-1, 1, { stream: next.stream, text: `${last.text}\n${next.text}` });
}

function endIn(value: unknown, line: PlacedLine, output: readonly OutputText[]): ShellEnd {
  const end = fitting(endSchema, value, line);
  if (end.kind === 'cancelled') return end;
  const { tail = '', ...rest } = end;
  return { ...rest, tail: typeof tail === 'string' ? tail : textOfTail(tail, linesOf(output)) };
}

/**
 * Reads a session file: a recording, whose first line is a header, or a session written by hand. A recording in a case
 * needs `readBlob`. Throws TAPE_INVALID with file and line, and REPLAY_DIVERGED for another format version.
 */
export function parseSessionFile(file: string, text: string, readBlob?: ReadBlob): SessionFile {
  const lines = readLines(file, text, { tornEnd: looksRecorded(text) });
  const [first] = lines;
  if (!first) throw invalid({ file, number: 1 }, 'is empty');
  if (!('format' in first.value)) return parseWritten(file, lines);
  checkFormat(first);
  const [, ...rest] = putTextsBack(lines, readBlob);
  const header = fitting(headerSchema, first.value, first);
  return header.kind === 'session' ? decodeSession(file, header, rest) : decodeShell(file, header, rest);
}

/** A recording may end in the middle of a line if its process was killed. */
const looksRecorded = (text: string): boolean => /^\s*\{\s*"format"/.test(text);

function checkFormat({ file, number, value }: PlacedLine): void {
  if (value['format'] === sessionFormat) return;
  throw new RepriseError(
    'REPLAY_DIVERGED',
    `${file}:${number} has format ${JSON.stringify(value['format'])}, but this version of Reprise reads format ${sessionFormat}`,
    {
      hint: 'record the case again, or use the version of Reprise that recorded it',
      position: { file, line: number, column: 1 },
    },
  );
}

const path = z.string().min(1);
const editSchema = z.union(
  [
    z.strictObject({ path, content: z.string() }),
    z.strictObject({ path, replace: z.string().min(1), with: z.string() }),
  ],
  'an edit needs `path` and `content`, or `path`, `replace` and `with`',
);
const anyText = z.string();
const someText = z.string().min(1);

/** Keys that a session written by hand may use, one per line. */
const readers: Readonly<Record<string, (value: unknown, place: PlacedLine) => ScriptStep>> = {
  text: (value, place) => ({ say: fitting(anyText, value, place) }),
  thought: (value, place) => ({ think: fitting(anyText, value, place) }),
  delete: (value, place) => ({ delete: fitting(path, value, place) }),
  commit: (value, place) => ({ commit: fitting(someText, value, place) }),
  fail: (value, place) => ({ fail: fitting(someText, value, place) }),
  edit: (value, place) => {
    const edit = fitting(editSchema, value, place);
    return 'content' in edit
      ? { write: edit }
      : { replace: { path: edit.path, from: edit.replace, to: edit.with } };
  },
  result: (value, place) => {
    if (typeof value === 'string') return { result: { text: value } };
    if (isJsonObject(value)) return { result: { output: value as ScriptOutput } };
    throw invalid(place, '`result` must be a string or an object');
  },
};

type ScriptOutput = NonNullable<Extract<ScriptStep, { result: unknown }>['result']['output']>;

const known = Object.keys(readers);

/** Parses a session written by hand, in which each line is one action of the agent. Throws TAPE_INVALID. */
function parseWritten(file: string, lines: readonly PlacedLine[]): WrittenSession {
  const script = lines.map(stepOf);
  const end = lines.findIndex(({ value }) => 'result' in value || 'fail' in value);
  const beyond = end < 0 ? undefined : lines[end + 1];
  if (beyond) throw invalid(beyond, 'comes after the end of the session', 'make the result the last line');
  return { kind: 'written', file, script };
}

function stepOf(place: PlacedLine): ScriptStep {
  const [key, ...more] = Object.keys(place.value);
  const read = key === undefined || !Object.hasOwn(readers, key) ? undefined : readers[key];
  if (!read || key === undefined || more.length > 0) {
    throw invalid(place, whyUnknown(place.value), `use one of these keys per line: ${known.join(', ')}`);
  }
  return read(place.value[key], place);
}

function whyUnknown(value: JsonObject): string {
  const keys = Object.keys(value);
  if (keys.includes('run')) return 'runs a command, which a session written by hand cannot do';
  return keys.length === 1 ? `has an unknown key \`${keys[0]}\`` : 'must have exactly one key';
}

/** The folder states in a recording, and all its other lines. */
interface StateLines {
  readonly before: WorktreeState | null;
  readonly after: WorktreeState | null;
  readonly pack?: string | undefined;
  readonly incomplete?: string | undefined;
  /** Number of the result, if it differs from the one in the header. */
  readonly n?: number;
  readonly rest: readonly PlacedLine[];
}

function takeStates(lines: readonly PlacedLine[]): StateLines {
  let before: WorktreeState | null = null;
  let after: WorktreeState | null = null;
  let pack: string | undefined;
  let incomplete: string | undefined;
  let n: number | undefined;
  const rest: PlacedLine[] = [];
  for (const line of lines) {
    const { value } = line;
    if ('before' in value) before = stateIn(value['before'], line);
    if ('after' in value) {
      after = afterIn(value['after'], { line, before });
      if (value['pack'] !== undefined) pack = fitting(sha256Schema, value['pack'], line);
    } else if ('incomplete' in value) incomplete = String(value['incomplete']);
    else if ('n' in value) n = fitting(numberSchema, value['n'], line);
    else if (!('before' in value)) rest.push(line);
  }
  return {
    before,
    after,
    rest,
    ...(n === undefined ? {} : { n }),
    ...(pack === undefined ? {} : { pack }),
    ...(incomplete === undefined ? {} : { incomplete }),
  };
}

/** Parts that are not given are unchanged. */
function afterIn(
  value: unknown,
  { line, before }: { readonly line: PlacedLine; readonly before: WorktreeState | null },
): WorktreeState | null {
  if (value === 'same') return before;
  if (value === null || before === null) return stateIn(value, line);
  return { ...before, ...fitting(changedStateSchema, value, line) } as WorktreeState;
}

const stateIn = (value: unknown, place: PlacedLine): WorktreeState | null =>
  value === null ? null : fitting(stateSchema, value, place);
