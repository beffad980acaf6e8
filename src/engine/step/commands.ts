import { delimiter, dirname, join, resolve } from 'node:path';
import type { ErrorCode, ErrorData } from '../../core/index.ts';
import type { WorkUnit } from '../../git/index.ts';
import type { ShellEnd } from '../../process/index.ts';
import type { Lease } from '../../store/index.ts';
import type { ShellCommand, StepView } from '../../workflow/index.ts';
import { attemptFileName, type Environment, logFile, type Observer } from '../environment.ts';
import { unitOf } from '../state/graph.ts';
import type { WorkLane } from './contract.ts';
import type { WorkLocation } from './workspace.ts';

export interface FailedCommand {
  /** Position among its commands, from 0. */
  readonly index: number;
  readonly text: string;
  readonly error: ErrorData;
  readonly tail: string;
}

interface NamedCommand {
  /** Command as written in the definition. */
  readonly text: string;
  readonly command: ShellCommand;
}

type CommandLane = Pick<WorkLane, 'effects' | 'runId' | 'lease' | 'unit'>;

interface CommandSequence {
  readonly location: Pick<WorkLocation, 'folder' | 'env'>;
  /** Prefix for the names of the logs: `check` gives `check-1`. */
  readonly what: string;
  readonly commands: readonly NamedCommand[];
}

/** Runs commands in order until one fails. Returns that one. */
export async function runInTurn(
  lane: CommandLane,
  { location, what, commands }: CommandSequence,
): Promise<FailedCommand | undefined> {
  for (const [index, { text, command }] of commands.entries()) {
    const { end } = await runAt(lane, { location, what: `${what}-${index + 1}`, command });
    if (end.kind === 'failed') return { index, text, error: end.error, tail: end.tail };
  }
  return undefined;
}

export function runAt(
  { effects, runId, lease, unit }: CommandLane,
  { location, what, command }: Pick<CommandSequence, 'location'> & { what?: string; command: ShellCommand },
): Promise<ShellAnswer> {
  return effects.shell({
    runId,
    lease,
    unit,
    command,
    folder: location.folder,
    env: location.env,
    ...(what === undefined ? {} : { what }),
  });
}

/** Returns the error of a step whose setup or check command failed. */
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

const maxText = 120;

const oneLine = (text: string): string => {
  const line = text.trim().replace(/\s*\n\s*/g, '; ');
  return line.length > maxText ? `${line.slice(0, maxText)}…` : line;
};

/** A shell command of a step, as data. */
export interface ShellRequest {
  readonly runId: string;
  readonly lease: Lease;
  readonly unit: WorkUnit;
  /** Name of a command other than the step's own work, such as `check-1`. */
  readonly what?: string | undefined;
  readonly command: ShellCommand;
  /** Absolute path of the working folder. Defaults to the root of the project. */
  readonly folder?: string | undefined;
  /** Environment variables. Those of the command take precedence. */
  readonly env: Readonly<Record<string, string>>;
  /** Timeout of the command. */
  readonly limitMs?: number | undefined;
}

export interface ShellAnswer {
  readonly end: ShellEnd;
  /** Last line of standard output that is not blank. */
  readonly lastLine: string;
  readonly logFile: string;
}

/** Runs a command of a step. Its process is registered in the store while it runs. */
export async function performShell(
  { environment, observe }: { readonly environment: Environment; readonly observe: Observer },
  request: ShellRequest,
  signal: AbortSignal,
): Promise<ShellAnswer> {
  const { store, projectRoot, stateDir, settings, runShell } = environment;
  const { runId, lease, unit, what, command, folder = projectRoot } = request;
  const { step, worker, attempt } = unit;
  const file = logFile({ stateDir, runId }, unit, what);
  const suffix = what === undefined ? '' : `.${what}`;
  let pid: number | undefined;
  let lastLine = '';
  try {
    const end = await runShell({
      unit,
      what,
      command: {
        ...command,
        env: { ...request.env, ...command.env },
        workingDirectory: resolve(folder, command.workingDirectory ?? '.'),
      },
      projectRoot,
      scratchDir: join(stateDir, 'scratch', runId, `${attemptFileName(unit)}${suffix}`),
      logFile: file,
      identity: { runId, step, attempt, incarnation: incarnationOf(lease, unit) },
      inheritEnv: folder === projectRoot ? environment.env : inheritedInWorkspace(environment.env, folder),
      signal,
      graceMs: settings.graceMs,
      onStarted: async child => {
        pid = child.pid;
        await store.addProcess(runId, lease, { ...child, step });
      },
      onLine: (stream, line) => {
        if (stream === 'stdout' && line.trim() !== '') lastLine = line.trim();
        observe({ kind: 'output', step, ...(worker === undefined ? {} : { worker }), stream, line });
      },
    });
    return { end, lastLine, logFile: file };
  } finally {
    if (pid !== undefined) await store.removeProcess(runId, pid);
  }
}

/**
 * Copies of a step run in parallel: the processes that one of them orphans must not be mistaken for those of another.
 */
export const incarnationOf = ({ incarnation }: Lease, { worker }: WorkUnit): string =>
  worker === undefined ? incarnation : `${incarnation}:${worker}`;

const misleading: ReadonlySet<string> = new Set([
  'GIT_ALTERNATE_OBJECT_DIRECTORIES',
  'GIT_COMMON_DIR',
  'GIT_DIR',
  'GIT_INDEX_FILE',
  'GIT_NAMESPACE',
  'GIT_OBJECT_DIRECTORY',
  'GIT_PREFIX',
  'GIT_WORK_TREE',
  'OLDPWD',
]);

const ceilings = 'GIT_CEILING_DIRECTORIES';

/**
 * Returns the environment for commands in a workspace. If a git hook started Reprise, its variables would direct every
 * git command to the checkout of the user, so they are removed. The ceiling keeps git from finding that checkout if an
 * agent deletes the `.git` file of its workspace, and `PWD` is set for programs that trust it.
 */
export const inheritedInWorkspace = (
  env: Readonly<Record<string, string | undefined>>,
  folder: string,
): Readonly<Record<string, string | undefined>> => ({
  ...Object.fromEntries(Object.entries(env).filter(([name]) => !misleading.has(name))),
  PWD: folder,
  [ceilings]: [dirname(folder), ...(env[ceilings] ? [env[ceilings]] : [])].join(delimiter),
});

const maxSubject = 72;

/** Returns the message of the commit that saves the work of a step: `fix:1: Repaired the parser`. */
export function commitMessage({ step, worker }: WorkUnit, summary: string): string {
  const unit = unitOf(step, worker);
  const subject = firstLine(summary) || 'work of the step';
  return `${unit}: ${shortened(subject, Math.max(20, maxSubject - unit.length - 2))}\n`;
}

/** Returns the first line that is not blank, without control characters. */
export const firstLine = (text: string): string =>
  text
    .split(/\r?\n/)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: this removes them
    .map(line => line.replace(/[\x00-\x1f\x7f-\x9f]+/g, ' ').trim())
    .find(line => line !== '') ?? '';

const shortened = (text: string, length: number): string => {
  const characters = [...text];
  return characters.length > length ? `${characters.slice(0, length - 1).join('')}…` : text;
};

interface VariablesOf {
  readonly runId: string;
  readonly unit: WorkUnit;
  /** Absolute path of the working folder. */
  readonly cwd: string;
  readonly ports?: { readonly first: number; readonly size: number } | undefined;
  readonly steps: Readonly<Record<string, StepView>>;
}

/** Returns the environment variables that every command and agent of a step receives. */
export function workVariables({ runId, unit, cwd, ports, steps }: VariablesOf): Record<string, string> {
  const variables: Record<string, string> = {
    REPRISE_RUN: runId,
    REPRISE_STEP: unit.step,
    REPRISE_WORKSPACE: cwd,
  };
  if (unit.worker !== undefined) variables['REPRISE_WORKER'] = String(unit.worker);
  if (ports) {
    variables['REPRISE_PORT'] = String(ports.first);
    variables['REPRISE_PORTS'] = String(ports.size);
  }
  for (const [id, { artifacts = {} }] of Object.entries(steps)) {
    for (const [name, path] of Object.entries(artifacts)) variables[artifactVariable(id, name)] = path;
  }
  return variables;
}

const artifactVariable = (step: string, name: string): string =>
  `REPRISE_ARTIFACT_${step}_${name}`.toUpperCase().replace(/[^A-Z0-9_]/g, '_');

/** Returns the text in a code fence that is longer than any fence inside it. */
export function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}
