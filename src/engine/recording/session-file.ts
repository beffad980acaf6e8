import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Script } from '../../agents/scripted/script.ts';
import type { AgentEvent, Cut, HostAnswer, HostQuestion, SessionResult } from '../../agents/session.ts';
import type { JsonObject } from '../../core/json.ts';
import type { Redactor } from '../../effects/redact/redact.ts';
import type { WorktreeState } from '../../git/delta/state.ts';
import type { ShellEnd } from '../../process/shell-step.ts';
import { SessionEncoder, ShellEncoder } from './encode.ts';

export const sessionFormat = 2;

/** Which recording it is: in another order of events, somebody else may take the same task. */
export interface RecordingId {
  /** The name of the agent, or what a script is: `run`, `check-1`, `verify`. */
  readonly role: string;
  readonly task: string;
  /** How many of that role and task had reached a result before. */
  readonly n: number;
  /** Only of what was interrupted: how many were before, since the last result. */
  readonly cut?: number | undefined;
}

interface Recorded extends RecordingId {
  /** Where it was read from, for messages. */
  readonly file: string;
  /** How many of that role and task had been opened before. */
  readonly order: number;
  /** `null` if nobody looked. */
  readonly before: WorktreeState | null;
  readonly after: WorktreeState | null;
  /** The pack with what `after` needs: the sha256 of a blob. */
  readonly pack?: string | undefined;
  /** Why something is missing in it. */
  readonly incomplete?: string | undefined;
}

/** One session with an agent. */
export interface RecordedSession extends Recorded {
  readonly kind: 'session';
  readonly agent: { readonly name: string; readonly kind: string; readonly model?: string | undefined };
  readonly prompt: string;
  readonly promptHash: string;
  readonly resumes: boolean;
  readonly outputSchema?: JsonObject | undefined;
  readonly lines: readonly SessionLine[];
  /** Of an interrupted one it is what was known when it ended; absent if the process died. */
  readonly result?: SessionResult | undefined;
  readonly why?: Cut | undefined;
}

export type SessionLine =
  | { readonly kind: 'event'; readonly event: AgentEvent }
  | { readonly kind: 'question'; readonly question: HostQuestion }
  | { readonly kind: 'answer'; readonly answer: HostAnswer };

/** One script that belongs to the work of a step. */
export interface RecordedShell extends Recorded {
  readonly kind: 'shell';
  readonly command: RecordedCommand;
  readonly what?: string | undefined;
  readonly output: readonly OutputText[];
  /** Absent if the process died. */
  readonly end?: ShellEnd | undefined;
}

interface RecordedCommand {
  readonly script: string;
  readonly shell: string;
  readonly working_directory: string;
}

/** Lines of one stream that follow each other. */
export interface OutputText {
  readonly stream: 'stdout' | 'stderr';
  readonly text: string;
}

/** A session that somebody wrote by hand, as what a scripted agent does. */
export interface WrittenSession {
  readonly kind: 'written';
  readonly file: string;
  readonly script: Script;
}

export type Recording = RecordedSession | RecordedShell;
export type SessionFile = Recording | WrittenSession;

/** `coder.fix.0.jsonl`; of one that was interrupted `coder.fix.0.cut0.jsonl`. */
export const sessionFileName = (id: RecordingId): string =>
  `${seriesName(id)}.${id.n}${id.cut === undefined ? '' : `.cut${id.cut}`}.jsonl`;

/** What all recordings of a role and a task begin with. */
export const seriesName = ({ role, task }: Pick<RecordingId, 'role' | 'task'>): string =>
  `${fileWord(role)}.${fileWord(task)}`;

const fileWord = (text: string): string =>
  text
    .replaceAll('/', '.')
    .replace(/:(\d+)/g, '.worker_$1')
    .replace(/[^\w.-]/g, '_');

/** What a script is called among recordings. */
export const shellRole = (what: string | undefined): string => what ?? 'run';

/** A prompt or script in the form in which it is stored and compared. */
export const normalisedText = (text: string, redactor: Pick<Redactor, 'text'>): string =>
  redactor
    .text(text)
    .replaceAll('\r\n', '\n')
    .replace(/[ \t]+$/gm, '')
    .trim();

export const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/** What is known when a recording begins. */
export type RecordingStart = RecordingId & { readonly order: number } & (
    | Pick<RecordedSession, 'kind' | 'agent' | 'prompt' | 'promptHash' | 'resumes' | 'outputSchema'>
    | Pick<RecordedShell, 'kind' | 'command' | 'what'>
  );

/** The first line of a file. */
export function headerLine(start: RecordingStart): object {
  const { role, task, n, cut, order } = start;
  const id = { role, task, n, ...(cut === undefined ? {} : { cut }), order };
  if (start.kind === 'shell') {
    const { kind, command, what } = start;
    return { format: sessionFormat, kind, ...id, ...(what === undefined ? {} : { what }), command };
  }
  const { kind, agent, prompt, promptHash, resumes, outputSchema } = start;
  return {
    format: sessionFormat,
    kind,
    ...id,
    agent,
    ...(resumes ? { resume: true } : {}),
    ...(outputSchema === undefined ? {} : { output_schema: outputSchema }),
    prompt,
    prompt_hash: promptHash,
  };
}

export const beforeLine = (before: WorktreeState | null): object => ({ before });

export const incompleteLine = (why: string): object => ({ incomplete: why });

/** Only what became other of the folder; `before` only if it is another one than the file began with. */
export const afterLine = (
  after: WorktreeState | null,
  {
    known,
    pack,
    before,
  }: {
    readonly known: WorktreeState | null;
    readonly pack?: string | undefined;
    readonly before?: WorktreeState | undefined;
  },
): object => ({
  ...(before ? { before } : {}),
  after: changedParts(before ?? known, after),
  ...(pack === undefined ? {} : { pack }),
});

function changedParts(
  before: WorktreeState | null,
  after: WorktreeState | null,
): Partial<WorktreeState> | 'same' | null {
  if (before === null || after === null) return after;
  const parts = (Object.keys(after) as (keyof WorktreeState)[]).filter(
    part => !isDeepStrictEqual(after[part], before[part]),
  );
  return parts.length === 0 ? 'same' : Object.fromEntries(parts.map(part => [part, after[part]]));
}

/** A recording as the text of its file; the same recording gives the same bytes. */
export function formatRecording(recording: Recording, redactor: Pick<Redactor, 'line'>): string {
  const { before, after, pack, incomplete } = recording;
  const lines = [
    headerLine(recording),
    beforeLine(before),
    ...(recording.kind === 'session' ? sessionLines(recording) : shellLines(recording)),
    ...(incomplete === undefined ? [] : [incompleteLine(incomplete)]),
    afterLine(after, { known: before, pack }),
  ];
  return lines.map(line => `${redactor.line(JSON.stringify(line))}\n`).join('');
}

function* sessionLines({ lines, result, why, cut }: RecordedSession): Generator<object> {
  const encoder = new SessionEncoder();
  for (const line of lines) {
    if (line.kind === 'question') yield encoder.question(line.question);
    else if (line.kind === 'answer') yield encoder.answer(line.answer);
    else {
      const event = encoder.event(line.event);
      if (event) yield event;
    }
  }
  if (result) yield* encoder.end(result, { why, interrupted: cut !== undefined });
}

function* shellLines({ output, end, cut }: RecordedShell): Generator<object> {
  const encoder = new ShellEncoder();
  for (const { stream, text } of output) yield encoder.output(stream, text.split('\n'));
  if (end) yield { ...encoder.end(end), ...(cut === undefined ? {} : { interrupted: true }) };
}
