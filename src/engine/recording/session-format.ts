import { isDeepStrictEqual } from 'node:util';
import type { Redactor } from '../../effects/redact/redact.ts';
import type { WorktreeState } from '../../git/delta/state.ts';
import { SessionEncoder } from './encode.ts';
import {
  type RecordedSession,
  type RecordedShell,
  type Recording,
  type RecordingId,
  sessionFormat,
} from './session-file.ts';
import { ShellEncoder } from './shell-encoder.ts';

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
