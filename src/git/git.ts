import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { RepriseError } from '../core/errors.ts';
import { endTrees } from '../process/end-trees.ts';
import { processStart } from '../process/identity.ts';
import { describeStartFailure } from '../process/start-failure.ts';
import { type Environment, gitArguments, gitEnvironment } from './git-environment.ts';

export interface GitOptions {
  /** The folder in which the commands run. */
  readonly cwd: string;
  /** Added to what is inherited. */
  readonly env?: Environment | undefined;
  /** What git gets to see of the user's environment; nothing by default. */
  readonly inheritEnv?: Environment | undefined;
}

export interface GitCommandOptions {
  /** Written to its standard input. */
  readonly input?: string | undefined;
  /** Aborting ends the command with all that it started, and then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Hooks of the repository run unless they are skipped. */
  readonly hooks?: 'run' | 'skip' | undefined;
  /** `bytes`: every character of input and output stands for one byte, so that nothing is changed by decoding. */
  readonly encoding?: 'text' | 'bytes' | undefined;
}

/** How a command ended. Ended by a signal, its code is 128. */
export interface GitResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs git in one folder, never through a shell. */
export interface Git {
  readonly cwd: string;
  /** Any exit code is an answer. Throws GIT_NOT_FOUND, or GIT_FAILED if it could not be started. */
  run(args: readonly string[], options?: GitCommandOptions): Promise<GitResult>;
  /** What it prints. Throws GIT_FAILED unless it exits with 0. */
  ok(args: readonly string[], options?: GitCommandOptions): Promise<string>;
  /** The one line that it prints. Throws like `ok`. */
  line(args: readonly string[], options?: GitCommandOptions): Promise<string>;
  /** The same in another folder, or with more in its environment. */
  with(changes: { readonly cwd?: string; readonly env?: Environment }): Git;
}

/** How long output may stay open after git has exited, because a hook left something running. */
const settleMs = 1000;
const graceMs = 5000;

/** Runs the `git` that is on the PATH. */
export function createGit({ cwd, env = {}, inheritEnv = {} }: GitOptions): Git {
  const environment = gitEnvironment(inheritEnv, env);
  const run: Git['run'] = (args, options = {}) => runGit(args, { cwd, environment, ...options });
  const ok: Git['ok'] = async (args, options) => {
    const result = await run(args, options);
    if (result.code !== 0) throw gitFailed(args, result);
    return result.stdout;
  };
  return {
    cwd,
    run,
    ok,
    line: async (args, options) => (await ok(args, options)).replace(/\n$/, ''),
    with: changes =>
      createGit({ cwd: changes.cwd ?? cwd, env: { ...env, ...changes.env }, inheritEnv: inheritEnv }),
  };
}

/** For a command whose exit code was looked at and means that something went wrong. */
export const gitFailed = (args: readonly string[], { code, stderr, stdout }: GitResult): RepriseError =>
  new RepriseError(
    'GIT_FAILED',
    `\`${describeCommand(args)}\` exited with ${code}${colon(lastLines(stderr) || lastLines(stdout))}`,
  );

const colon = (text: string): string => (text === '' ? '' : `: ${text}`);

/** The end of what a command said, which is where git says why. */
export const lastLines = (text: string, count = 5): string =>
  text
    .trimEnd()
    .split('\n')
    .slice(-count)
    .map(line => line.replace(/^(fatal|error): /, ''))
    .join('\n');

const describeCommand = (args: readonly string[]): string =>
  ['git', ...args.map(arg => (/^[\w@%+=:,./^{}-]+$/.test(arg) ? arg : JSON.stringify(arg)))].join(' ');

interface Invocation extends GitCommandOptions {
  readonly cwd: string;
  readonly environment: Environment;
}

async function runGit(args: readonly string[], invocation: Invocation): Promise<GitResult> {
  const { cwd, environment, input, signal, hooks = 'run', encoding = 'text' } = invocation;
  signal?.throwIfAborted();
  const argv = ['git', ...gitArguments(hooks), ...args];
  const decoding = encoding === 'text' ? 'utf8' : 'latin1';
  let child: ChildProcess;
  try {
    child = spawn('git', argv.slice(1), {
      cwd,
      env: environment,
      // A group of its own: Ctrl-C in a terminal must not cut git off in the middle of an update.
      detached: true,
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    });
  } catch (error) {
    throw cannotStart(error, { args, cwd });
  }
  // Git may end without having read all of its input.
  child.stdin?.on('error', () => {}).end(Buffer.from(input ?? '', decoding));
  const stopEnding = endOnAbort(child, signal);
  try {
    const ended = await closed(child, error => cannotStart(error, { args, cwd }));
    signal?.throwIfAborted();
    return {
      code: ended.code,
      stdout: ended.stdout.toString(decoding),
      stderr: ended.stderr.toString('utf8'),
    };
  } finally {
    stopEnding();
  }
}

interface Ended {
  readonly code: number;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

/** Waits for `close`, because output may still be in the pipe when a process has exited. */
function closed(child: ChildProcess, failure: (error: Error) => Error): Promise<Ended> {
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk));
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    child.once('error', error => reject(failure(error)));
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

/** Asked with SIGTERM, git removes its lock files before it ends. */
function endOnAbort(child: ChildProcess, signal: AbortSignal | undefined): () => void {
  const { pid } = child;
  if (signal === undefined || pid === undefined) return () => {};
  const root = { pid, processStart: processStart(pid) ?? 'unknown', ownGroup: true };
  const end = () => void endTrees({ roots: [root], graceMs });
  signal.addEventListener('abort', end, { once: true });
  return () => signal.removeEventListener('abort', end);
}

function cannotStart(thrown: unknown, { args, cwd }: { args: readonly string[]; cwd: string }): RepriseError {
  const { message, hint } = describeStartFailure(thrown, ['git'], cwd);
  const missing = existsSync(cwd) && thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT';
  if (!missing) return new RepriseError('GIT_FAILED', `\`${describeCommand(args)}\`: ${message}`, { hint });
  return new RepriseError('GIT_NOT_FOUND', 'there is no git on the PATH', {
    hint: 'install git 2.38 or newer: https://git-scm.com/downloads',
    cause: thrown,
  });
}
