import { accessSync, constants } from 'node:fs';
import { mkdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { delimiter, join, resolve } from 'node:path';
import type { ErrorData, Json } from '../core/index.ts';
import type { OnLine } from './output.ts';
import { readOutputFile } from './output-file.ts';
import { type ProcessEnd, type RunningProcess, startProcess } from './start.ts';
import type { ProcessIdentity } from './table.ts';

export interface RunShellOptions {
  readonly command: {
    readonly script: string;
    readonly shell: ShellName;
    readonly env: Readonly<Record<string, string>>;
    /** Path relative to the project root. */
    readonly workingDirectory?: string | undefined;
  };
  readonly projectRoot: string;
  /** Folder that only this attempt uses. */
  readonly scratchDir: string;
  readonly logFile: string;
  /** Identity of the script, unique among those that run at the same time. */
  readonly identity: {
    readonly runId: string;
    readonly step: string;
    readonly attempt: number;
    readonly incarnation: string;
  };
  /** Environment that the script inherits. */
  readonly inheritEnv: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly graceMs: number;
  /** Called right after the start. If it rejects, the script is stopped and the step rejects as well. */
  readonly onStarted?: ((child: ProcessIdentity) => void | Promise<void>) | undefined;
  readonly onLine?: OnLine | undefined;
  /** Called with the processes that no signal could stop. */
  readonly onSurvived?: ((processes: readonly ProcessIdentity[]) => void) | undefined;
}

export type ShellEnd =
  | { readonly kind: 'completed'; readonly output: Json; readonly tail: string }
  | { readonly kind: 'failed'; readonly error: ErrorData; readonly tail: string }
  | { readonly kind: 'cancelled' };

/**
 * Runs the script of a step and reads its output file. A step ends with its script: background processes of the script
 * are stopped, with the same grace period, before this resolves. A step therefore cannot start a server for later steps.
 * Aborting stops everything, and takes precedence over a result that arrives at the same time.
 * Rejects only if the scratch folder cannot be used or `onStarted` rejects.
 */
export async function runShellStep(options: RunShellOptions): Promise<ShellEnd> {
  if (options.signal.aborted) return { kind: 'cancelled' };
  const files = { script: join(options.scratchDir, 'script'), output: join(options.scratchDir, 'output') };
  await mkdir(options.scratchDir, { recursive: true, mode: 0o700 });
  try {
    await writeFile(files.script, options.command.script, { mode: 0o600 });
    await writeFile(files.output, '', { mode: 0o600 });
    return await runScript(options, files);
  } finally {
    // A script that removed or changed the folder still keeps its own result.
    await Promise.allSettled([
      rm(files.script, { force: true }),
      rm(files.output, { force: true, recursive: true }),
    ]);
    await rmdir(options.scratchDir).catch(() => {});
  }
}

interface ShellFiles {
  readonly script: string;
  readonly output: string;
}

async function runScript(options: RunShellOptions, files: ShellFiles): Promise<ShellEnd> {
  const { command, projectRoot, signal, logFile } = options;
  if (signal.aborted) return { kind: 'cancelled' };
  const env = environmentOf(options, files);
  const invocation = shellArgv({ shell: command.shell, scriptFile: files.script, path: env['PATH'] });
  const running = startProcess({
    argv: invocation.argv,
    cwd: resolve(projectRoot, command.workingDirectory ?? '.'),
    env,
    marker: markerOf(options),
    logFile,
    onLine: options.onLine,
  });
  await supervise(running, options);
  if (signal.aborted) return { kind: 'cancelled' };

  const end = await running.ended;
  const bashIsMissing = invocation.shell !== command.shell;
  const error = describeShellFailure(end, { logFile, bashIsMissing });
  if (error) return { kind: 'failed', error, tail: end.tail };
  const output = await readOutputFile(files.output);
  return output.ok
    ? { kind: 'completed', output: output.value, tail: end.tail }
    : { kind: 'failed', error: output.error, tail: end.tail };
}

const environmentOf = (options: RunShellOptions, files: ShellFiles): Record<string, string | undefined> => ({
  ...options.inheritEnv,
  ...options.command.env,
  REPRISE_OUTPUT: files.output,
  REPRISE_ROOT: options.projectRoot,
});

/** Includes the project root, because a run that is replayed in two folders at once has the same ids in both. */
const markerOf = ({ identity, projectRoot }: RunShellOptions) => ({
  REPRISE_ROOT: projectRoot,
  REPRISE_RUN: identity.runId,
  REPRISE_STEP: identity.step,
  REPRISE_ATTEMPT: String(identity.attempt),
  REPRISE_INCARNATION: identity.incarnation,
});

/** Resolves when the process and all its descendants have ended, by themselves or by an abort. */
async function supervise(running: RunningProcess, options: RunShellOptions): Promise<void> {
  const { signal, graceMs, onStarted, onSurvived } = options;
  let onAbort = () => {};
  const aborted = new Promise<void>(resolve => {
    onAbort = resolve;
  });
  signal.addEventListener('abort', onAbort);
  try {
    if (running.identity) await onStarted?.(running.identity);
    await Promise.race([running.ended, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    const { survived } = await running.stop({ graceMs });
    if (survived.length > 0) onSurvived?.(survived);
  }
}

type ShellName = 'bash' | 'sh';

interface ShellInvocation {
  readonly argv: readonly string[];
  /** Shell that runs the script: `sh` if `bash` was requested and is not installed. */
  readonly shell: ShellName;
}

/** Command line that runs a script file, stops at the first failing command and reads no start-up file of the user. */
export function shellArgv(options: {
  readonly shell: ShellName;
  readonly scriptFile: string;
  /** `PATH` to search for bash. */
  readonly path: string | undefined;
}): ShellInvocation {
  const shell = options.shell === 'bash' && isInstalled('bash', options.path) ? 'bash' : 'sh';
  switch (shell) {
    case 'bash':
      return { shell, argv: ['bash', '--noprofile', '--norc', '-eo', 'pipefail', options.scriptFile] };
    case 'sh':
      return { shell, argv: ['sh', '-e', options.scriptFile] };
  }
}

function isInstalled(program: string, path = '/usr/bin:/bin'): boolean {
  return path.split(delimiter).some(folder => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

interface ShellFailureContext {
  readonly logFile: string;
  readonly bashIsMissing: boolean;
}

const quotedLines = 10;
const quotedLineLength = 300;

/** Error of a failed script, with the end of its output and the path of its log; `undefined` if it succeeded. */
function describeShellFailure(
  end: ProcessEnd,
  { logFile, bashIsMissing }: ShellFailureContext,
): ErrorData | undefined {
  const hint = [
    bashIsMissing &&
      'bash is not installed, so sh ran the script: install bash, or set `shell: sh` and use plain sh.',
    `The whole output is in ${logFile}`,
  ]
    .filter(Boolean)
    .join(' ');
  switch (end.kind) {
    case 'couldNotStart':
      return end.error;
    case 'signalled':
      return { code: 'KILLED', message: withOutput(`was terminated by ${end.signal}`, end.tail), hint };
    case 'exited': {
      const { exitCode } = end;
      if (exitCode === 0) return undefined;
      return {
        code: 'EXIT_NONZERO',
        message: withOutput(`exited with code ${exitCode}`, end.tail),
        hint,
        exitCode,
      };
    }
  }
}

function withOutput(message: string, tail: string): string {
  const lines = tail.trimEnd().split(/\r?\n/).slice(-quotedLines);
  const quoted = lines.map(line =>
    line.length > quotedLineLength ? `${line.slice(0, quotedLineLength)}…` : line,
  );
  return tail.trim() === '' ? message : `${message}\n${quoted.join('\n')}`;
}
