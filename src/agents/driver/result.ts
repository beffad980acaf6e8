import { type ErrorData, type Json, type JsonObject, toErrorData, toJson } from '../../core/index.ts';
import type { ProcessEnd } from '../../process/index.ts';
import { compileOutputSchema } from '../../workflow/index.ts';
import type { SessionRequest, SessionResult } from '../session.ts';
import { failed, protocolError, reportedFailure, withDenials } from './failures.ts';
import type { AgentVerdict } from './protocol.ts';
import type { HostReporter } from './turns.ts';

/** Turns the verdict of the agent into the result of the session, and validates structured output. Never rejects. */
export async function judge(
  verdict: AgentVerdict,
  { request, progress }: { readonly request: SessionRequest; readonly progress: HostReporter },
): Promise<SessionResult> {
  const soFar = () => progress.soFar();
  const fail = (error: ErrorData): SessionResult => ({
    kind: 'failed',
    error: withDenials(error, soFar().denials),
    ...soFar(),
  });
  switch (verdict.kind) {
    case 'failed':
      return fail(verdict.error);
    case 'stopped':
      return fail({
        code: 'AGENT_FAILED',
        message: 'the agent reported a cancellation that Reprise did not request',
        hint: 'retry the step',
      });
    case 'limit':
      return { ...verdict, ...soFar() };
    case 'ok': {
      if (!request.outputSchema) return { kind: 'ok', text: verdict.text, ...soFar(), ...given(verdict) };
      const { structured, text } = verdict;
      const answer = await structuredAnswer({ schema: request.outputSchema, given: structured, text }).catch(
        error => ({ ok: false, error: toErrorData(error) }) as const,
      );
      return answer.ok ? { kind: 'ok', text, structured: answer.value, ...soFar() } : fail(answer.error);
    }
  }
}

const given = ({ structured }: Extract<AgentVerdict, { kind: 'ok' }>) =>
  structured === undefined ? {} : { structured };

/** Context of an agent that exited without a verdict. */
interface SilentEnd {
  readonly request: SessionRequest;
  readonly stderr: string;
  /** Last line of standard output. */
  readonly lastLine: string | undefined;
  readonly cutLines: number;
  readonly now: number;
  readonly logFile: string | undefined;
}

/** Returns the verdict on an agent that exited without a result. */
export function silentEnd(end: ProcessEnd | 'closed its output', known: SilentEnd): AgentVerdict {
  const { request, stderr, lastLine, cutLines, now, logFile } = known;
  const details = [
    cutLines > 0 && `${cutLines} of its output lines were too long to read.`,
    stderr || (lastLine !== undefined && `Its last output: ${lastLine}`),
  ].filter(Boolean);
  const messageFor = (what: string) => [`the agent ${what} without a result`, ...details].join('\n');
  const log = logFile ? `The whole output is in ${logFile}` : undefined;
  const byHand = `run \`${request.agent.command?.join(' ') ?? request.agent.kind}\` by hand to see its output. ${log ?? ''}`;
  if (end === 'closed its output') return failed(protocolError(messageFor(end), byHand.trim()));
  switch (end.kind) {
    case 'couldNotStart':
      return failed(end.error);
    case 'signalled':
      return failed({
        code: 'KILLED',
        message: messageFor(`was killed by ${end.signal}`),
        hint: ['another process killed it, or the machine ran out of memory; retry the step.', log]
          .filter(Boolean)
          .join(' '),
      });
    case 'exited': {
      if (end.exitCode === 0) return failed(protocolError(messageFor('exited'), byHand.trim()));
      const message = messageFor(`exited with code ${end.exitCode}`);
      const verdict = reportedFailure({ kind: request.agent.kind, message, now, hint: byHand.trim() });
      return verdict.kind === 'failed' ? failed({ ...verdict.error, exitCode: end.exitCode }) : verdict;
    }
  }
}

type StructuredResult =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly error: ErrorData };

const hint = 'describe the expected answer in the prompt, or add `retry` to the step';

/**
 * Returns structured output that Reprise itself validated against the schema. If the agent gave none, parses the text:
 * first all of it, then its code fences from the last to the first. Otherwise returns OUTPUT_INVALID. Never rejects.
 */
export async function structuredAnswer(options: {
  readonly schema: JsonObject;
  readonly given: Json | undefined;
  readonly text: string;
}): Promise<StructuredResult> {
  // The step checks the answer again: its own code, or the same schema, whose patterns were checked at load.
  const compiled = compileOutputSchema(options.schema, { unsafePatterns: 'skip' });
  if (compiled.kind === 'invalid') return invalid(`the output schema cannot be used: ${compiled.reason}`);
  const candidates = options.given === undefined ? candidatesIn(options.text) : [options.given];
  let problem: ErrorData | undefined;
  for (const candidate of candidates) {
    try {
      return { ok: true, value: toJson(compiled.parse(candidate)) };
    } catch (error) {
      problem ??= toErrorData(error);
    }
  }
  if (problem) return { ok: false, error: { ...problem, hint } };
  return invalid(
    `the agent returned no structured output, but the step declares one\n${excerpt(options.text)}`,
  );
}

const candidatesIn = (text: string): readonly Json[] =>
  [text, ...fencedBlocks(text).toReversed()].flatMap(parse);

/** Returns the contents of all code fences, each of which ends with a line of just three backticks. */
function fencedBlocks(text: string): readonly string[] {
  const blocks: string[] = [];
  let open: string[] | undefined;
  for (const line of text.split('\n')) {
    const isFence = /^ {0,3}```/.test(line);
    if (!open) open = isFence ? [] : undefined;
    else if (isFence && line.trim() === '```') {
      blocks.push(open.join('\n'));
      open = undefined;
    } else open.push(line);
  }
  return blocks;
}

function parse(text: string): readonly Json[] {
  try {
    return [JSON.parse(text) as Json];
  } catch {
    return [];
  }
}

const invalid = (message: string): StructuredResult => ({
  ok: false,
  error: { code: 'OUTPUT_INVALID', message: message.trim(), hint },
});

const excerpt = (text: string): string => (text.length > 300 ? `${text.slice(0, 300)}…` : text);

/** Returns the system prompt of the step, followed by the one of the agent. */
export const systemPromptOf = ({ agent, systemPrompt }: SessionRequest): string | undefined =>
  [systemPrompt, agent.systemPrompt].filter(Boolean).join('\n\n') || undefined;

/** Returns the prompt for agents without a separate system prompt. */
export const wholePrompt = (request: SessionRequest): string =>
  [systemPromptOf(request), request.prompt].filter(Boolean).join('\n\n');

/** Returns the prompt for agents that do not support output schemas either. */
export const promptWithSchema = (request: SessionRequest): string =>
  request.outputSchema
    ? `${wholePrompt(request)}\n\n${schemaRequest(JSON.stringify(request.outputSchema))}`
    : wholePrompt(request);

const schemaRequest = (schema: string): string =>
  `When the work is done, end with exactly one JSON value in a \`\`\`json code fence. It must fit this JSON Schema:\n${schema}`;

/** Prompt that resumes the work after a limit. */
export const continuePrompt = 'Please continue where you stopped.';
