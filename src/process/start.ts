import { type ChildProcess, spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import type { ErrorData } from '../core/index.ts';
import { OutputCollector, type OutputOptions } from './output.ts';
import { type Marker, type ProcessIdentity, processStart } from './table.ts';
import { type EndedTrees, endTrees } from './tree.ts';

export interface StartProcessOptions extends OutputOptions {
  readonly argv: readonly string[];
  readonly cwd: string;
  /** The whole environment but for the marker: nothing is inherited. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Put into the environment, so that whatever the process starts can be found again. Unique to this process. */
  readonly marker: Marker;
  /** `open`: it is written to with `write`, until `endInput`. */
  readonly stdin?: 'ignore' | 'open' | { readonly text: string };
  /** How long to go on reading once it has exited while something that it left behind still holds its output. */
  readonly settleMs?: number;
}

export interface RunningProcess {
  /** `undefined` if it could not be started. */
  readonly identity: ProcessIdentity | undefined;
  /**
   * Resolves when it has exited and its output has been read to the end; never rejects. If something that it left
   * behind keeps the output open, reading stops after `settleMs`, and that something is left alone.
   */
  readonly ended: Promise<ProcessEnd>;
  /** Only with `stdin: 'open'`; otherwise, and once it no longer reads, the text is lost. */
  write(text: string): void;
  endInput(): void;
  /**
   * Ends it and all that it started, also what it left behind after it has exited. Resolves when nothing of it is
   * left and `ended` has resolved, or when no signal helps.
   */
  stop(options: { readonly graceMs: number }): Promise<EndedTrees>;
}

/** How a process ended, with the last part of what it printed. */
export type ProcessEnd =
  | { readonly kind: 'exited'; readonly exitCode: number; readonly tail: string }
  | { readonly kind: 'signalled'; readonly signal: NodeJS.Signals; readonly tail: string }
  | { readonly kind: 'couldNotStart'; readonly error: ErrorData; readonly tail: '' };

const defaultSettleMs = 1000;

/** Starts a program in a process group (and session) of its own. Never throws: a failure is how it `ended`. */
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
      // One that no signal ends would be waited for for ever.
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
    // A program may end, or close its input, without having read all of it.
    child.stdin?.on('error', () => {});
    if (stdin !== 'open') child.stdin?.end(stdin.text);
  }
  return child;
}

/** Until the event loop reaps it, even a child that has ended already can be seen, as a zombie. */
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

/** Why nothing was started at all: its output would have been lost. */
const describeLogFailure = (thrown: unknown, logFile: string): ErrorData =>
  failure(
    `cannot write the log file ${logFile}: ${messageOf(thrown)}`,
    'check the folder, its permissions and the disk',
  );

/** Why a process could not be started, in words that say what to do. */
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
        'hand long values over in a file instead',
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

/** A missing folder and a missing program give the same error code. */
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
