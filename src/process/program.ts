import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  unlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ProcessIdentity, processStart, thisProcess } from './table.ts';
import { endTrees, type TreeRoot } from './tree.ts';

export interface ProgramOptions {
  readonly cwd: string;
  /** Whole environment of the program: nothing is inherited. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Standard input. Defaults to an empty one. */
  readonly input?: Uint8Array | undefined;
  /** Aborting stops the program with all its descendants. */
  readonly signal?: AbortSignal | undefined;
}

/** Result of a program. The code is 128 if a signal terminated it. */
export interface ProgramEnd {
  readonly code: number;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

/** Runs a program to its end. Rejects with the system's error code if it could not be started. */
export type RunProgram = (argv: readonly string[], options: ProgramOptions) => Promise<ProgramEnd>;

/** Time that output may stay open after the program has exited, because a descendant still holds it. */
const settleMs = 1000;
const graceMs = 5000;

/**
 * Spawns the program directly. It gets its own process group, so Ctrl-C in a terminal does not interrupt it. Its standard
 * error is a file: a pipe would break if this process were killed, and the next message would kill the program.
 */
export const runProgram: RunProgram = async (argv, options) => {
  const errors = openNameless();
  try {
    const end = await spawnProgram(argv, { ...options, errors });
    return errors === undefined ? end : { ...end, stderr: readAll(errors) };
  } finally {
    if (errors !== undefined) closeSync(errors);
  }
};

async function spawnProgram(
  [program = '', ...args]: readonly string[],
  { cwd, env, input, signal, errors }: ProgramOptions & { readonly errors: number | undefined },
): Promise<ProgramEnd> {
  const child = spawn(program, args, {
    cwd,
    env,
    detached: true,
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', errors ?? 'pipe'],
  });
  // The program may exit before it has read all of its input.
  child.stdin?.on('error', () => {}).end(input);
  const { pid } = child;
  const isOver =
    signal && pid !== undefined ? endOnAbort({ ...identityOf(pid), ownGroup: true }, signal) : undefined;
  try {
    return await closed(child);
  } finally {
    await isOver?.();
  }
}

let opened = 0;

/** Flag of Linux that opens a new file without a name in a folder. */
const nameless = process.platform === 'linux' ? constants.O_DIRECTORY | 0o20000000 : undefined;

/** Opens a file without a name, which disappears with its last descriptor; `undefined` if the disk is full. */
function openNameless(): number | undefined {
  if (nameless !== undefined) {
    try {
      return openSync(tmpdir(), nameless | constants.O_RDWR, 0o600);
    } catch {
      // Not every file system can do that.
    }
  }
  const file = join(tmpdir(), `reprise-errors-${process.pid}-${process.hrtime.bigint()}-${opened++}`);
  try {
    const descriptor = openSync(file, 'wx+', 0o600);
    unlinkSync(file);
    return descriptor;
  } catch {
    return undefined;
  }
}

function readAll(descriptor: number): Buffer {
  const text = Buffer.alloc(fstatSync(descriptor).size);
  return text.subarray(0, readSync(descriptor, text, 0, text.length, 0));
}

/** Waits for `close`, because output may still be in the pipe when the process has exited. */
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
 * Stops a process with all its descendants on abort. SIGTERM comes first, so git can remove its lock files. Call the
 * returned function when the program has ended; it resolves when all processes that had to be stopped have ended.
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

/**
 * Creates a folder for temporary files. Its name identifies this process, so that `removeLeftovers` of a later process
 * removes it if this one is killed.
 */
export function temporaryFolder(kind: string, within = tmpdir()): string {
  mkdirSync(within, { recursive: true });
  return mkdtempSync(join(within, `reprise-${kind}-${ownMark()}-`));
}

let own: string | undefined;

function ownMark(): string {
  if (own === undefined) {
    const { host, pid, processStart } = thisProcess();
    own = `${short(host)}.${pid}.${short(processStart)}`;
  }
  return own;
}

const short = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8);

const longestLifeMs = 24 * 60 * 60_000;

/**
 * Removes temporary folders whose process has ended, and returns their number. A process on another machine or in another
 * container cannot be checked: its folders are removed after a day.
 */
export function removeLeftovers(within = tmpdir()): number {
  const leftovers = foldersIn(within).filter(name => isLeftover(within, name));
  for (const name of leftovers) {
    try {
      rmSync(join(within, name), { recursive: true, force: true });
    } catch {
      // The folder belongs to another user, or another process is removing it.
    }
  }
  return leftovers.length;
}

function isLeftover(within: string, name: string): boolean {
  const [, host, pid, started] = /^reprise-[a-z]+-([0-9a-f]{8})\.(\d+)\.([0-9a-f]{8})-\w+$/.exec(name) ?? [];
  if (host === undefined || started === undefined) return false;
  if (host !== short(thisProcess().host)) return ageOf(join(within, name)) > longestLifeMs;
  const start = processStart(Number(pid));
  return start === undefined || short(start) !== started;
}

const ageOf = (path: string): number => {
  const made = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  return made === undefined ? 0 : Date.now() - made;
};

function foldersIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry: Dirent) => entry.isDirectory() && entry.name.startsWith('reprise-'))
      .map(({ name }) => name);
  } catch {
    return [];
  }
}
