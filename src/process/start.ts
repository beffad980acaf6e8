import { type ChildProcess, spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import type { ErrorData } from '../core/index.ts';
import { OutputCollector, type OutputOptions } from './output.ts';
import { type Marker, type ProcessIdentity, processStart } from './table.ts';
import { type EndedTrees, endTrees } from './tree.ts';

export interface StartProcessOptions extends OutputOptions {
  readonly argv: readonly string[];
  readonly cwd: string;
  /** Whole environment except for the marker: nothing is inherited. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Variables added to the environment, by which all descendants are found. Must be unique to this process. */
  readonly marker: Marker;
  /** Defaults to `ignore`. With `open`, use `write` and `endInput`. */
  readonly stdin?: 'ignore' | 'open' | { readonly text: string };
  /** Time to keep reading after the exit while a background process still holds the output. Defaults to 1000. */
  readonly settleMs?: number;
}

export interface RunningProcess {
  /** Identity of the process; `undefined` if it could not be started. */
  readonly identity: ProcessIdentity | undefined;
  /**
   * Resolves when the process has exited and its output has been read to the end; never rejects. If a background process
   * keeps the output open, reading stops after `settleMs` and the background process keeps running.
   */
  readonly ended: Promise<ProcessEnd>;
  /** Writes to stdin. Needs `stdin: 'open'`; without it, or once the process no longer reads, the text is lost. */
  write(text: string): void;
  endInput(): void;
  /**
   * Stops the process and all its descendants, even after it has exited itself. Resolves when all of them have ended and
   * `ended` has resolved, or when no signal has an effect.
   */
  stop(options: { readonly graceMs: number }): Promise<EndedTrees>;
}

/** Result of a process, with the end of its output. */
export type ProcessEnd =
  | { readonly kind: 'exited'; readonly exitCode: number; readonly tail: string }
  | { readonly kind: 'signalled'; readonly signal: NodeJS.Signals; readonly tail: string }
  | { readonly kind: 'couldNotStart'; readonly error: ErrorData; readonly tail: '' };

const defaultSettleMs = 1000;

/** Starts a program in its own process group and session. Never throws: `ended` reports a failure to start. */
export function startProcess(options: StartProcessOptions): RunningProcess {
  const { argv, cwd, logFile = '' } = options;
  let output: OutputCollector;
  try {
    output = new OutputCollector(options);
  } catch (error) {
    return neverStarted(describeLogFailure(error, logFile));
  }
  try {
    return follow(spawnChild(options), output, options);
  } catch (error) {
    void output.end();
    return neverStarted(describeStartFailure(error, argv, cwd));
  }
}

function follow(child: ChildProcess, output: OutputCollector, options: StartProcessOptions): RunningProcess {
  const identity = child.pid === undefined ? undefined : identify(child.pid);
  const ended = followToEnd(child, output, options);
  const roots = identity ? [{ ...identity, ownGroup: true }] : [];
  return {
    identity,
    ended,
    write: text => {
      if (child.stdin?.writable) child.stdin.write(text);
    },
    endInput: () => child.stdin?.end(),
    stop: async ({ graceMs }) => {
      const trees = await endTrees({ roots, marked: options.marker, graceMs });
      // Waiting for a process that no signal stops would never end.
      if (!trees.survived.some(({ pid }) => pid === identity?.pid)) await ended;
      return trees;
    },
  };
}

function spawnChild({ argv, cwd, env, marker, stdin = 'ignore' }: StartProcessOptions): ChildProcess {
  const [program = '', ...args] = argv;
  const child = spawn(program, args, {
    cwd,
    env: { ...env, ...marker },
    detached: true,
    stdio: [stdin === 'ignore' ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  if (stdin !== 'ignore') {
    // The program may exit or close its input before it has read all of it.
    child.stdin?.on('error', () => {});
    if (stdin !== 'open') child.stdin?.end(stdin.text);
  }
  return child;
}

/** A child that has already ended is still visible as a zombie until the event loop reaps it. */
const identify = (pid: number): ProcessIdentity => ({ pid, processStart: processStart(pid) ?? 'unknown' });

async function followToEnd(
  child: ChildProcess,
  output: OutputCollector,
  { argv, cwd, settleMs = defaultSettleMs }: StartProcessOptions,
): Promise<ProcessEnd> {
  if (child.stdout) output.read('stdout', child.stdout);
  if (child.stderr) output.read('stderr', child.stderr);
  return new Promise(resolve => {
    child.once('error', async error => {
      await output.end();
      resolve({ kind: 'couldNotStart', error: describeStartFailure(error, argv, cwd), tail: '' });
    });
    child.once('exit', () => {
      const timer = setTimeout(() => void output.detach(), settleMs);
      child.once('close', () => clearTimeout(timer));
    });
    child.once('close', async (exitCode, signal) => {
      if (child.pid === undefined) return;
      const tail = await output.end();
      resolve(
        signal ? { kind: 'signalled', signal, tail } : { kind: 'exited', exitCode: exitCode ?? 1, tail },
      );
    });
  });
}

const neverStarted = (error: ErrorData): RunningProcess => ({
  identity: undefined,
  ended: Promise.resolve({ kind: 'couldNotStart', error, tail: '' }),
  write: () => {},
  endInput: () => {},
  stop: async () => ({ ended: [], survived: [] }),
});

/** Error if the log file cannot be opened. The process is not started, because its output would be lost. */
const describeLogFailure = (thrown: unknown, logFile: string): ErrorData =>
  failure(
    `cannot write the log file ${logFile}: ${messageOf(thrown)}`,
    'check the folder, its permissions and the disk',
  );

/** Error of a process that could not be started, with a hint. */
export function describeStartFailure(thrown: unknown, argv: readonly string[], cwd: string): ErrorData {
  const program = argv[0] ?? '';
  const place = problemWithFolder(cwd);
  if (place)
    return failure(
      `cannot start ${program}: ${place}`,
      'create the folder first, or correct the working directory',
    );
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
  switch (code) {
    case 'ENOENT':
      return failure(
        `cannot start ${program}: no such program`,
        'install it, or check its spelling and PATH',
      );
    case 'EACCES':
      return failure(`cannot start ${program}: permission denied`, `make it executable: chmod +x ${program}`);
    case 'E2BIG':
      return failure(
        `cannot start ${program}: its arguments and environment are too long`,
        'pass long values in a file instead',
      );
    case 'EAGAIN':
    case 'EMFILE':
    case 'ENFILE':
    case 'ENOMEM':
      return failure(
        `cannot start ${program}: out of resources (${code})`,
        'lower runtime.max_concurrent_workers',
      );
    default:
      return failure(`cannot start ${program}: ${messageOf(thrown)}`);
  }
}

/** Problem with the working directory. The system's error code is the same for a missing folder and program. */
function problemWithFolder(cwd: string): string | undefined {
  try {
    return statSync(cwd).isDirectory() ? undefined : `${cwd} is not a folder`;
  } catch {
    return `the folder ${cwd} does not exist`;
  }
}

const failure = (message: string, hint?: string): ErrorData => ({
  code: 'SPAWN_FAILED',
  message,
  ...(hint ? { hint } : {}),
});

const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));
