import type { Json, JsonObject } from '../core/index.ts';
import { failed, limitError, protocolError, reportedFailure } from './driver/failures.ts';
import { processSessions } from './driver/process-session.ts';
import { commandOf } from './driver/program.ts';
import {
  type Adapter,
  type AgentVerdict,
  at,
  event,
  type Launch,
  numberAt,
  type Protocol,
  type ProtocolContext,
  parseObject,
  type Step,
  textAt,
} from './driver/protocol.ts';
import { wholePrompt } from './driver/result.ts';
import { type AgentEvent, cleanUsage, type SessionRequest } from './session.ts';

/** Parses an event that a custom program printed in the shape of an AgentEvent. Returns `undefined` for other lines. */
function eventOf(message: JsonObject): AgentEvent | undefined {
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
        ...cleanUsage({
          inputTokens: numberAt(message, 'inputTokens') ?? 0,
          outputTokens: numberAt(message, 'outputTokens') ?? 0,
          cachedTokens: numberAt(message, 'cachedTokens') ?? 0,
          costUsd: numberAt(message, 'costUsd') ?? null,
        }),
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

/** Content of a `{"type":"result"}` line. */
type ResultLine =
  | Extract<AgentVerdict, { kind: 'ok' }>
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'limit'; readonly message: string; readonly resetsAt?: string | undefined }
  | { readonly kind: 'malformed'; readonly message: string };

/** A line that starts like a result but cannot be read as one. */
const unreadableResult = (line: string): ResultLine | undefined =>
  /^\s*\{\s*"type"\s*:\s*"result"/.test(line)
    ? { kind: 'malformed', message: 'it is not valid JSON, or nested too deeply' }
    : undefined;

const ownKeys: ReadonlySet<string> = new Set(['text', 'result', 'output']);

/** Parses a result with `text`, `output` (data), `error` (text or `{message}`) or `limit` (`{resetsAt, reason}`). */
function resultOf(message: JsonObject): ResultLine | undefined {
  if (message['type'] !== 'result') return undefined;
  if (at(message, 'limit') !== undefined) {
    const resetsAt = textAt(message, 'limit', 'resetsAt');
    const reason = textAt(message, 'limit', 'reason') ?? 'the agent ran into a limit';
    return { kind: 'limit', message: reason, ...(resetsAt ? { resetsAt } : {}) };
  }
  const written = at(message, 'text') ?? at(message, 'result') ?? '';
  const text = typeof written === 'string' ? written : '';
  const error = errorIn(at(message, 'error'));
  if (error !== undefined || message['is_error'] === true) return { kind: 'failed', message: error ?? text };
  if (typeof written !== 'string') return { kind: 'malformed', message: 'its text is not a string' };
  const structured = at(message, 'output');
  // A result in the format of another program has other keys, and its text is in earlier lines.
  const keys = Object.keys(message).filter(key => key !== 'type');
  if (keys.length > 0 && !keys.some(key => ownKeys.has(key))) return undefined;
  return { kind: 'ok', text, ...(structured === undefined ? {} : { structured }) };
}

/** Message of an error in any shape. `null` and `false` are none. */
function errorIn(error: Json | undefined): string | undefined {
  if (error === undefined || error === null || error === false) return undefined;
  const message = typeof error === 'string' ? error : (textAt(error, 'message') ?? textAt(error, 'reason'));
  return message ?? (error === true ? '' : JSON.stringify(error));
}

/** Maximum length of the answer. Of a longer output, only the end is kept. */
const longestText = 1_000_000;

/**
 * Launches any program. The prompt replaces `{prompt}` or `{prompt_file}` in the arguments, and is written to standard
 * input if neither occurs. `{schema_file}` is a file with the JSON Schema of the answer.
 */
export function commandLaunch(request: SessionRequest, folder: string): Launch {
  const { agent, outputSchema } = request;
  const prompt = wholePrompt(request);
  const written = [...commandOf(agent), ...agent.args];
  const isPlaced = written.some(word => /\{prompt(_file)?\}/.test(word));
  const values: Readonly<Record<string, string>> = {
    prompt,
    prompt_file: `${folder}/prompt.md`,
    schema_file: `${folder}/schema.json`,
  };
  const fill = (word: string) =>
    word.replace(/\{(prompt|prompt_file|schema_file)\}/g, (_, name: string) => values[name] ?? '');
  return {
    argv: [...written.slice(0, 1), ...written.slice(1).map(fill)],
    stdin: isPlaced ? 'ignore' : { text: prompt },
    files: { 'prompt.md': prompt, 'schema.json': JSON.stringify(outputSchema ?? {}) },
  };
}

interface CommandState {
  readonly text: string;
  /** Whether the program prints events, which means that a result must follow. */
  readonly hasEvents: boolean;
  readonly result: ResultLine | undefined;
}

/** Treats plain text as the answer, and JSON lines in the shape of an AgentEvent as events. */
function commandProtocol(context: ProtocolContext): Protocol<CommandState> {
  const stay = (state: CommandState) => ({ state, signals: [] });
  return {
    open: () => stay({ text: '', hasEvents: false, result: undefined }),
    take: takeLine,
    answer: stay,
    interrupt: stay,
    ended: (state, exitCode) => verdictOf(state, exitCode, context),
  };
}

function takeLine(state: CommandState, line: string): Step<CommandState> {
  const message = parseObject(line);
  const result = message ? resultOf(message) : unreadableResult(line);
  if (result) return { state: { ...state, result }, signals: [] };
  const known = message && eventOf(message);
  if (known) {
    const text = known.type === 'text' ? known.text : state.text;
    return { state: { ...state, hasEvents: true, text }, signals: [event(known)] };
  }
  if (state.hasEvents) return { state, signals: [event({ type: 'raw', line: line.slice(0, 2000) })] };
  const text = state.text === '' ? line : `${state.text}\n${line}`;
  return {
    state: { ...state, text: text.length > 2 * longestText ? text.slice(-longestText) : text },
    signals: [event({ type: 'text', text: line })],
  };
}

/** Derives the verdict from both the printed result and the exit code. */
function verdictOf(
  { result, hasEvents, text }: CommandState,
  exitCode: number | undefined,
  context: ProtocolContext,
): AgentVerdict | undefined {
  const now = context.now();
  switch (result?.kind) {
    case 'failed':
      return reportedFailure({ kind: 'command', message: result.message, now });
    case 'limit': {
      const { resetsAt, message } = result;
      return { kind: 'limit', error: limitError(message, resetsAt), ...(resetsAt ? { resetsAt } : {}) };
    }
    case 'malformed':
      return failed(
        protocolError(`the agent printed a result that cannot be read: ${result.message}`, printResult),
      );
    case 'ok':
    case undefined: {
      if (exitCode !== 0) return undefined;
      if (result) return result;
      return hasEvents ? failed(noResult) : { kind: 'ok', text: text.slice(-longestText).trim() };
    }
  }
}

const printResult = 'print {"type":"result","text":"..."} as the last line';

const noResult = protocolError('the agent printed events but exited without a result', printResult);

const commandAdapter: Adapter<CommandState> = {
  launch: commandLaunch,
  protocol: commandProtocol,
  speaksOnStdout: false,
  isAnswer: () => true,
  canContinue: false,
};

/** Opens sessions with custom programs. */
export const commandSessions = processSessions(commandAdapter);
