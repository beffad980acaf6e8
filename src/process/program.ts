import { type ChildProcess, spawn } from 'node:child_process';
import { type ProcessIdentity, processStart } from './table.ts';
import { endTrees, type TreeRoot } from './tree.ts';

export interface ProgramOptions {
  readonly cwd: string;
  /** All that it gets to see of an environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Written to its standard input, which is empty otherwise. */
  readonly input?: Uint8Array | undefined;
  /** Aborting ends it with all that it started. */
  readonly signal?: AbortSignal | undefined;
}

/** How a program ended. Ended by a signal, its code is 128. */
export interface ProgramEnd {
  readonly code: number;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

/** Runs a program to its end. Rejects if it could not be started, with the system's code for why. */
export type RunProgram = (argv: readonly string[], options: ProgramOptions) => Promise<ProgramEnd>;

/** How long output may stay open after a program has exited, because it left something running. */
const settleMs = 1000;
const graceMs = 5000;

/** Started by this process. In a group of its own: Ctrl-C in a terminal must not cut it off in the middle. */
export const runProgram: RunProgram = async ([program = '', ...args], { cwd, env, input, signal }) => {
  const child = spawn(program, args, {
    cwd,
    env,
    detached: true,
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  // It may end without having read all of its input.
  child.stdin?.on('error', () => {}).end(input);
  const { pid } = child;
  const isOver =
    signal && pid !== undefined ? endOnAbort({ ...identityOf(pid), ownGroup: true }, signal) : undefined;
  try {
    return await closed(child);
  } finally {
    await isOver?.();
  }
};

/** Waits for `close`, because output may still be in the pipe when a process has exited. */
function closed(child: ChildProcess): Promise<ProgramEnd> {
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk));
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    child.once('error', reject);
    child.once('exit', () => {
      timer = setTimeout(() => {
        child.stdout?.destroy();
        child.stderr?.destroy();
      }, settleMs);
    });
    child.once('close', code => {
      clearTimeout(timer);
      resolve({ code: code ?? 128, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr) });
    });
  });
}

/**
 * Ends it with all that it started. Asked with SIGTERM first: git then removes its lock files before it ends. To be told
 * when the program has ended, and resolves when nothing of it is left that was to be ended.
 */
export function endOnAbort(root: TreeRoot, signal: AbortSignal): () => Promise<void> {
  let ending: Promise<unknown> | undefined;
  const end = () => {
    ending = endTrees({ roots: [root], graceMs });
  };
  if (signal.aborted) end();
  signal.addEventListener('abort', end, { once: true });
  return async () => {
    signal.removeEventListener('abort', end);
    await ending;
  };
}

export const identityOf = (pid: number): ProcessIdentity => ({
  pid,
  processStart: processStart(pid) ?? 'unknown',
});
