import { isDeepStrictEqual } from 'node:util';
import type { SessionRequest } from '../../agents/session.ts';
import { compareSnapshot } from '../../cases/snapshot/diff.ts';
import type { Redactor } from '../../effects/redact/redact.ts';
import type { WorkScript } from '../../engine/environment.ts';
import { commandOf, promptOf } from '../../engine/recording/recorder.ts';
import type { RecordedSession, RecordedShell } from '../../engine/recording/session-file.ts';

/** A recording of something that is now asked for in other words. */
export interface StaleSession {
  readonly file: string;
  readonly role: string;
  readonly task: string;
  /** What is other: `the prompt`, `the script`. */
  readonly what: string;
  readonly diff: string;
  /** What to type to record it again. */
  readonly command: string;
}

type Staleness = Pick<StaleSession, 'what' | 'diff'>;

/** `undefined` if the agent is told what it was told then. */
export function stalenessOfSession(
  recorded: RecordedSession,
  request: SessionRequest,
  redactor: Redactor,
): Staleness | undefined {
  const { prompt, promptHash } = promptOf(request, redactor);
  if (prompt !== recorded.prompt) return { what: 'the prompt', diff: diffOf(recorded.prompt, prompt) };
  const schema = redactor.json(request.outputSchema);
  if (!isDeepStrictEqual(schema, redactor.json(recorded.outputSchema)))
    return { what: 'the schema of the answer', diff: diffOf(pretty(recorded.outputSchema), pretty(schema)) };
  // Of what the agent is told beside its prompt only a hash is kept.
  return promptHash === recorded.promptHash ? undefined : { what: 'the system prompt', diff: '' };
}

export function stalenessOfShell(
  recorded: RecordedShell,
  { command }: WorkScript,
  redactor: Redactor,
): Staleness | undefined {
  const { script, shell, working_directory } = commandOf(command, redactor);
  const was = recorded.command;
  if (script !== was.script) return { what: 'the script', diff: diffOf(was.script, script) };
  if (shell !== was.shell) return { what: 'the shell', diff: diffOf(was.shell, shell) };
  if (working_directory === was.working_directory) return undefined;
  return { what: 'the working directory', diff: diffOf(was.working_directory, working_directory) };
}

const pretty = (value: unknown): string => JSON.stringify(value, null, 2) ?? 'none';

const longestDiff = 40;

function diffOf(expected: string, actual: string): string {
  const compared = compareSnapshot({ expected, actual });
  if (compared.equal) return '';
  const lines = compared.diff.trimEnd().split('\n');
  const more = lines.length - longestDiff;
  return [...lines.slice(0, longestDiff), ...(more > 0 ? [`… ${more} more lines`] : [])].join('\n');
}
