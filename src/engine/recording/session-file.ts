import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type {
  AgentEvent,
  HostAnswer,
  HostQuestion,
  Script,
  SessionCut,
  SessionResult,
} from '../../agents/index.ts';
import type { JsonObject } from '../../core/index.ts';
import type { Redactor } from '../../effects/redact/index.ts';
import type { WorktreeState } from '../../git/delta/index.ts';
import type { ShellEnd } from '../../process/index.ts';
import { SessionEncoder, ShellEncoder } from './encode.ts';

export const sessionFormat = 2;

/** Identifies a recording. It names no worker: in another interleaving, another worker may take the same task. */
export interface RecordingId {
  /** Name of the agent, or role of a script: `run`, `check-1`, `verify`. */
  readonly role: string;
  readonly task: string;
  /** Number of earlier recordings of the role and task that reached a result. */
  readonly n: number;
  /** Number of interrupted recordings since the last result; set only for an interrupted one. */
  readonly cut?: number | undefined;
}

interface RecordedBase extends RecordingId {
  /** File that it was read from, for messages. */
  readonly file: string;
  /** Number of earlier recordings of the role and task. */
  readonly order: number;
  /** State of the folder before; `null` if it was not read. */
  readonly before: WorktreeState | null;
  readonly after: WorktreeState | null;
  /** SHA-256 of the blob that holds the git pack for `after`. */
  readonly pack?: string | undefined;
  /** Reason why the recording is incomplete. */
  readonly incomplete?: string | undefined;
}

export interface RecordedSession extends RecordedBase {
  readonly kind: 'session';
  readonly agent: { readonly name: string; readonly kind: string; readonly model?: string | undefined };
  readonly prompt: string;
  readonly promptHash: string;
  readonly resumes: boolean;
  /** Key that the prompt asked for. The stored prompt does not contain it. */
  readonly nextKey?: string | undefined;
  readonly outputSchema?: JsonObject | undefined;
  readonly lines: readonly SessionLine[];
  /** Result. For an interrupted session, what was known when it ended; absent if the process died. */
  readonly result?: SessionResult | undefined;
  readonly why?: SessionCut | undefined;
}

export type SessionLine =
  | { readonly kind: 'event'; readonly event: AgentEvent }
  | { readonly kind: 'question'; readonly question: HostQuestion }
  | { readonly kind: 'answer'; readonly answer: HostAnswer };

/** A script that is part of a step's work. */
export interface RecordedShell extends RecordedBase {
  readonly kind: 'shell';
  readonly command: RecordedCommand;
  readonly what?: string | undefined;
  readonly output: readonly OutputText[];
  /** End of the script; absent if the process died. */
  readonly end?: ShellEnd | undefined;
}

interface RecordedCommand {
  readonly script: string;
  readonly shell: string;
  readonly working_directory: string;
}

/** Consecutive lines of one stream. */
export interface OutputText {
  readonly stream: 'stdout' | 'stderr';
  readonly text: string;
}

/** A session written by hand, as a script for a scripted agent. */
export interface WrittenSession {
  readonly kind: 'written';
  readonly file: string;
  readonly script: Script;
}

export type RecordedActivity = RecordedSession | RecordedShell;
export type SessionFile = RecordedActivity | WrittenSession;

/** Returns `coder.fix.0.jsonl`, or `coder.fix.0.cut0.jsonl` for an interrupted recording. */
export const sessionFileName = (id: RecordingId): string =>
  `${seriesName(id)}.${id.n}${id.cut === undefined ? '' : `.cut${id.cut}`}.jsonl`;

/** Returns the common prefix of all recordings of a role and a task. */
export const seriesName = ({ role, task }: Pick<RecordingId, 'role' | 'task'>): string =>
  `${fileWord(role)}.${fileWord(task)}`;

const fileWord = (text: string): string =>
  text
    .replaceAll('/', '.')
    .replace(/:(\d+)/g, '.worker_$1')
    .replace(/[^\w.-]/g, '_');

/** Returns the role of a script. */
export const shellRole = (what: string | undefined): string => what ?? 'run';

/** Returns a prompt or script in the form in which it is stored and compared. */
export const normalisedText = (text: string, redactor: Pick<Redactor, 'text'>): string =>
  redactor
    .text(text)
    .replaceAll('\r\n', '\n')
    .replace(/[ \t]+$/gm, '')
    .trim();

export const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The facts known when a recording starts. */
export type RecordingStart = RecordingId & { readonly order: number } & (
    | Pick<
        RecordedSession,
        'kind' | 'agent' | 'prompt' | 'promptHash' | 'resumes' | 'nextKey' | 'outputSchema'
      >
    | Pick<RecordedShell, 'kind' | 'command' | 'what'>
  );

/** Returns the header, which is the first line of a recording. */
export function headerLine(start: RecordingStart): object {
  const { role, task, n, cut, order } = start;
  const id = { role, task, n, ...(cut === undefined ? {} : { cut }), order };
  if (start.kind === 'shell') {
    const { kind, command, what } = start;
    return { format: sessionFormat, kind, ...id, ...(what === undefined ? {} : { what }), command };
  }
  const { kind, agent, prompt, promptHash, resumes, nextKey, outputSchema } = start;
  return {
    format: sessionFormat,
    kind,
    ...id,
    agent,
    ...(resumes ? { resume: true } : {}),
    ...(nextKey === undefined ? {} : { next_key: nextKey }),
    ...(outputSchema === undefined ? {} : { output_schema: outputSchema }),
    prompt,
    prompt_hash: promptHash,
  };
}

export const beforeLine = (before: WorktreeState | null): object => ({ before });

export const incompleteLine = (why: string): object => ({ incomplete: why });

/** Contains only changed parts of the state, and `before` only if it differs from the one at the start of the file. */
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

/** Returns the content of a recording file. The same recording gives the same bytes. */
export function formatRecording(recording: RecordedActivity, redactor: Pick<Redactor, 'line'>): string {
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
