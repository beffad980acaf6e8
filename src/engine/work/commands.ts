import type { ErrorCode, ErrorData } from '../../core/errors.ts';
import type { ShellCommand } from '../../workflow/model.ts';
import type { ShellAnswer } from '../step/commands.ts';
import type { WorkLane } from '../step/contract.ts';
import type { Place } from '../step/workspace.ts';

/** A command that did not pass. */
export interface FailedCommand {
  readonly text: string;
  readonly error: ErrorData;
  readonly tail: string;
}

export interface NamedCommand {
  /** As it was written. */
  readonly text: string;
  readonly command: ShellCommand;
}

type CommandLane = Pick<WorkLane, 'effects' | 'runId' | 'lease' | 'unit'>;

interface InTurn {
  readonly place: Pick<Place, 'folder' | 'env'>;
  /** What they are, for the names of their logs: `check` gives `check-1`. */
  readonly what: string;
  readonly commands: readonly NamedCommand[];
}

/** Runs commands one after another, up to the first that fails. */
export async function runInTurn(
  lane: CommandLane,
  { place, what, commands }: InTurn,
): Promise<FailedCommand | undefined> {
  for (const [index, { text, command }] of commands.entries()) {
    const { end } = await runAt(lane, { place, what: `${what}-${index + 1}`, command });
    if (end.kind === 'failed') return { text, error: end.error, tail: end.tail };
  }
  return undefined;
}

export function runAt(
  { effects, runId, lease, unit }: CommandLane,
  { place, what, command }: Pick<InTurn, 'place'> & { what?: string; command: ShellCommand },
): Promise<ShellAnswer> {
  return effects.shell({
    runId,
    lease,
    unit,
    command,
    folder: place.folder,
    env: place.env,
    ...(what === undefined ? {} : { what }),
  });
}

/** The failure of a command beside the work, as that of the step. */
export const commandError = (
  code: ErrorCode,
  what: string,
  { text, error }: Pick<FailedCommand, 'text' | 'error'>,
): ErrorData => ({
  code,
  message: `${what} \`${oneLine(text)}\` ${error.message}`,
  ...(error.hint === undefined ? {} : { hint: error.hint }),
  ...(error.exitCode === undefined ? {} : { exitCode: error.exitCode }),
});

const longestText = 120;

const oneLine = (text: string): string => {
  const line = text.trim().replace(/\s*\n\s*/g, '; ');
  return line.length > longestText ? `${line.slice(0, longestText)}…` : line;
};
