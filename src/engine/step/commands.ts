import { delimiter, dirname, join, resolve } from 'node:path';
import type { ErrorCode, ErrorData } from '../../core/errors.ts';
import type { Unit } from '../../git/orders.ts';
import type { ShellEnd } from '../../process/shell-step.ts';
import type { Lease } from '../../store/port.ts';
import type { ShellCommand, StepView } from '../../workflow/model.ts';
import type { Environment, Observer } from '../environment.ts';
import { attemptFileName, logFile } from '../log-files.ts';
import { unitOf } from '../state/graph.ts';
import type { WorkLane } from './contract.ts';
import type { Place } from './workspace.ts';

/** A command that did not pass. */
export interface FailedCommand {
  readonly text: string;
  readonly error: ErrorData;
  readonly tail: string;
}

interface NamedCommand {
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

/** A shell command that belongs to the work of a step, as data. */
export interface ShellRequest {
  readonly runId: string;
  readonly lease: Lease;
  readonly unit: Unit;
  /** What it is beside the work itself, such as `check-1`. */
  readonly what?: string | undefined;
  readonly command: ShellCommand;
  /** Where it runs, absolute; the project's root by default. */
  readonly folder?: string | undefined;
  /** Beneath what the command says itself. */
  readonly env: Readonly<Record<string, string>>;
  /** It is ended after so long. */
  readonly limitMs?: number | undefined;
}

export interface ShellAnswer {
  readonly end: ShellEnd;
  /** The last line with something on it that went to its standard output. */
  readonly lastLine: string;
  readonly logFile: string;
}

/** Runs a command of a step; its process is remembered for as long as it runs. */
export async function performShell(
  { environment, observe }: { readonly environment: Environment; readonly observe: Observer },
  request: ShellRequest,
  signal: AbortSignal,
): Promise<ShellAnswer> {
  const { store, projectRoot, stateDir, settings, runShell } = environment;
  const { runId, lease, unit, what, command, folder = projectRoot } = request;
  const { step, worker, attempt } = unit;
  const file = logFile({ stateDir, runId }, unit, what);
  const beside = what === undefined ? '' : `.${what}`;
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
      scratchDir: join(stateDir, 'scratch', runId, `${attemptFileName(unit)}${beside}`),
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

/** Workers of one step run at the same time: what one of them leaves behind must not be taken for another's. */
export const incarnationOf = ({ incarnation }: Lease, { worker }: Unit): string =>
  worker === undefined ? incarnation : `${incarnation}:${worker}`;

const elsewhere: ReadonlySet<string> = new Set([
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
 * What is inherited in a workspace. A git hook that started us has variables that would lead every git command there
 * to the checkout of the user. Git would also find that checkout by itself, further up, if an agent removed the `.git`
 * of its folder; and a program that believes $PWD would work in it.
 */
export const inheritedInWorkspace = (
  env: Readonly<Record<string, string | undefined>>,
  folder: string,
): Readonly<Record<string, string | undefined>> => ({
  ...Object.fromEntries(Object.entries(env).filter(([name]) => !elsewhere.has(name))),
  PWD: folder,
  [ceilings]: [dirname(folder), ...(env[ceilings] ? [env[ceilings]] : [])].join(delimiter),
});

const longestSubject = 72;

/** The message of the commit that keeps what a step did: `fix:1: Repaired the parser`. */
export function commitMessage({ step, worker }: Unit, summary: string): string {
  const unit = unitOf(step, worker);
  const subject = firstLine(summary) || 'work of the step';
  return `${unit}: ${shortened(subject, Math.max(20, longestSubject - unit.length - 2))}\n`;
}

/** The first line with something on it, without what a terminal or git would take for something else. */
export const firstLine = (text: string): string =>
  text
    .split(/\r?\n/)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
    .map(line => line.replace(/[\x00-\x1f\x7f-\x9f]+/g, ' ').trim())
    .find(line => line !== '') ?? '';

const shortened = (text: string, length: number): string => {
  const characters = [...text];
  return characters.length > length ? `${characters.slice(0, length - 1).join('')}…` : text;
};

interface VariablesOf {
  readonly runId: string;
  readonly unit: Unit;
  /** Absolute path of where the work is done. */
  readonly cwd: string;
  readonly ports?: { readonly first: number; readonly size: number } | undefined;
  readonly steps: Readonly<Record<string, StepView>>;
}

/** What every command and agent of a step finds in its environment. */
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

/** A text in a code fence that nothing inside of it can close. */
export function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}
