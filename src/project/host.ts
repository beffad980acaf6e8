import { randomUUID } from 'node:crypto';
import type { SessionFactory } from '../agents/index.ts';
import { type Clock, type ErrorCode, type ErrorData, type Ids, RepriseError } from '../core/index.ts';
import type { World } from '../effects/index.ts';
import type { Environment, RunResult, ShellRunner } from '../engine/index.ts';
import { thisProcess } from '../process/index.ts';
import type { EventStore, Owner } from '../store/index.ts';
import { isUtf8Locale } from '../terminal/index.ts';
import type { WorkflowModel } from '../workflow/index.ts';

/** An approval that waits for an answer. */
export interface ApprovalQuestion {
  readonly step: string;
  readonly message: string;
  readonly choices: readonly string[];
}

/** Everything that connects a command to the outside world. Test cases replace it. */
export interface Host {
  readonly world: World;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly openSession: SessionFactory;
  readonly runShell: ShellRunner;
  /** Opens the store. Defaults to SQLite in the state folder. `undefined` if none exists and `readonly` is set. */
  readonly openStore?: OpenStore | undefined;
  /** Replaces the environment of the engine, for example with an in-memory model of git. */
  readonly surround?: ((environment: Environment) => Environment) | undefined;
  /** Caches values by name, for commands that a test performs many times in the same folder. */
  readonly once?: Once | undefined;
  /** Changes a loaded workflow, for what-if experiments. */
  readonly revise?: ((model: WorkflowModel) => WorkflowModel) | undefined;
}

/** Returns the value of `make`, possibly from a cache. `make` must return an equivalent value on every call. */
export type Once = <T>(name: string, make: () => Promise<T>) => Promise<T>;

/** Returns a cache that calls `make` once for each name. A rejected promise is not cached. */
export function rememberOnce(): Once {
  const made = new Map<string, Promise<unknown>>();
  return <T>(name: string, make: () => Promise<T>): Promise<T> => {
    const known = made.get(name) as Promise<T> | undefined;
    if (known) return known;
    const making = make();
    made.set(name, making);
    making.catch(() => made.delete(name));
    return making;
  };
}

/** Calls `make` every time. */
export const everyTime: Once = (_, make) => make();

export type OpenStore = (
  stateDir: string,
  options: { readonly readonly: boolean },
) => Promise<EventStore | undefined>;

/** Input, output and environment of a command. Commands use this instead of `process`. */
export interface CommandIo {
  /** Writes data to standard output: results, documents, NDJSON. */
  out(text: string): void;
  /** Resolves when all output has been written. A command with much output awaits it to limit memory. */
  flushed?(): Promise<void>;
  /** Writes messages for people to standard error. */
  err(text: string): void;
  readonly stdin: AsyncIterable<Uint8Array | string>;
  readonly isTTY: { readonly stdin: boolean; readonly stdout: boolean; readonly stderr: boolean };
  readonly columns: number;
  readonly color: { readonly out: boolean; readonly err: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Absolute path of the current folder. */
  readonly cwd: string;
  /** Returns milliseconds since the epoch. */
  now(): number;
  /** Signal that aborts when the process has to stop. Its reason is recorded in the history. */
  readonly interrupt: AbortSignal;
  /** Signal that aborts when a process that has to stop must not wait any longer. */
  readonly hurry?: AbortSignal | undefined;
  /** Replacement for the real world in test cases. */
  readonly host?: Host | undefined;
  /** Takes work that must follow the command as effects of its own. Absent if the command performs it itself. */
  readonly defer?: ((work: (io: CommandIo) => Promise<number>) => void) | undefined;
  /** Stream for the live view. Absent if the output is not a terminal. */
  readonly terminal?: NodeJS.WriteStream | undefined;
  /** Calls back for every key, including Ctrl-C. Returns a function that stops it. Absent without a keyboard. */
  readonly listenToKeys?: ((pressed: (key: string) => void) => () => void) | undefined;
  /** Asks the person at the keyboard. Resolves to `undefined` if the answer is postponed. Absent without a keyboard. */
  readonly ask?: ((question: ApprovalQuestion) => Promise<string | undefined>) | undefined;
}

/** Writes the text and ends it with a newline. */
export const writeLines = (write: (text: string) => void, text: string): void =>
  write(text.endsWith('\n') ? text : `${text}\n`);

/** Returns the formatting that one of the two streams supports. */
export const styleOf = (io: CommandIo, stream: 'out' | 'err') => ({
  color: io.color[stream],
  columns: io.columns,
  unicode: isUtf8Locale(io.env),
});

/** Returns this process as an owner of locks and runs, with a new incarnation for each command. */
export const thisOwner = (): Owner => ({ ...thisProcess(), incarnation: randomUUID() });

/** Returns the name of the user from the environment. */
export const userName = ({ env }: CommandIo): string | undefined =>
  env['USER'] || env['LOGNAME'] || env['USERNAME'] || undefined;

/** Exit codes of the process. A signal exits with 128 plus its number. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  needsPerson: 3,
  budget: 4,
  diverged: 5,
  cannotLand: 6,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Returns the exit code for a run that has ended, waits or is suspended. A signal has its own exit code. */
export function exitCodeOfResult(result: RunResult): ExitCode {
  switch (result.status) {
    case 'completed':
      return exitCodes.ok;
    case 'failed':
      return exitCodeOfFailure(result.error);
    case 'cancelled':
      return exitCodes.failed;
    case 'waiting':
      return exitCodes.needsPerson;
    case 'suspended':
      if (result.by === 'lock') return exitCodes.needsPerson;
      return result.by === 'budget' ? exitCodes.budget : exitCodes.failed;
  }
}

/** Returns the exit code for a command that failed. */
export const exitCodeOfError = (error: unknown): ExitCode =>
  error instanceof RepriseError ? exitCodeOfFailure(error) : exitCodes.failed;

function exitCodeOfFailure({ code }: Pick<ErrorData, 'code'>): ExitCode {
  return special.get(code) ?? (mistakes.has(code) ? exitCodes.usage : exitCodes.failed);
}

const special: ReadonlyMap<string, ExitCode> = new Map<ErrorCode, ExitCode>([
  ['BUDGET_EXCEEDED', exitCodes.budget],
  ['AGENT_LIMIT', exitCodes.budget],
  ['HISTORY_DIVERGED', exitCodes.diverged],
  ['REPLAY_DIVERGED', exitCodes.diverged],
  ['CANNOT_LAND', exitCodes.cannotLand],
  ['PERMISSION_DENIED', exitCodes.needsPerson],
  ['AGENT_LOGIN', exitCodes.needsPerson],
  ['LOCK_STALLED', exitCodes.needsPerson],
]);

/** Errors before anything ran: the command, the definition or the input must change first. */
const mistakes: ReadonlySet<string> = new Set<ErrorCode>([
  'DEFINITION_INVALID',
  'DEFINITION_CHANGED',
  'INPUT_INVALID',
  'WORKFLOW_NOT_FOUND',
  'CASE_NOT_FOUND',
  'CONFIG_INVALID',
  'USAGE',
  'RUN_NOT_FOUND',
  'RUN_AMBIGUOUS',
  'RUN_ENDED',
  'TASK_NOT_FOUND',
  'NOT_WAITING',
  'CHOICE_UNKNOWN',
]);
