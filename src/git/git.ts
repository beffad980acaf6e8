import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { RepriseError } from '../core/index.ts';
import { describeStartFailure, type RunProgram, runProgram } from '../process/index.ts';

export interface GitOptions {
  /** Folder in which the commands run. */
  readonly cwd: string;
  /** Variables that are added to the inherited ones. */
  readonly env?: GitEnvironment | undefined;
  /** Variables of the user's environment that git inherits. Defaults to none. */
  readonly inheritEnv?: GitEnvironment | undefined;
  /** Function that starts git. Defaults to a child process. */
  readonly runProgram?: RunProgram | undefined;
}

interface GitCommandOptions {
  /** Text for standard input. */
  readonly input?: string | undefined;
  /** Aborting kills the command with its child processes, then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Whether the hooks of the repository run. Defaults to `run`. */
  readonly hooks?: 'run' | 'skip' | undefined;
  /** Defaults to `text`. With `bytes`, every character of input and output is one byte, so decoding changes nothing. */
  readonly encoding?: 'text' | 'bytes' | undefined;
}

/** Result of a command. The code is 128 if a signal killed it. */
export interface GitResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs git in one folder, never through a shell. */
export interface Git {
  readonly cwd: string;
  /** Returns the result for any exit code. Throws GIT_NOT_FOUND, or GIT_FAILED if git could not be started. */
  run(args: readonly string[], options?: GitCommandOptions): Promise<GitResult>;
  /** Returns the output. Throws GIT_FAILED unless the exit code is 0. */
  ok(args: readonly string[], options?: GitCommandOptions): Promise<string>;
  /** Returns the only line of the output. Throws like `ok`. */
  line(args: readonly string[], options?: GitCommandOptions): Promise<string>;
  /** Returns a git for another folder, or with additional variables. */
  with(changes: { readonly cwd?: string; readonly env?: GitEnvironment }): Git;
}

/** Runs the `git` that is on the PATH. */
export function createGit(given: GitOptions): Git {
  const { cwd, env = {}, inheritEnv = {}, runProgram: start = runProgram } = given;
  const environment = gitEnvironment(inheritEnv, env);
  const run: Git['run'] = (args, options = {}) => runGit(args, { cwd, environment, run: start, ...options });
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
    with: changes => createGit({ ...given, cwd: changes.cwd ?? cwd, env: { ...env, ...changes.env } }),
  };
}

/** Folder and environment of a synchronous command. */
export interface GitPlace {
  readonly cwd: string;
  readonly env: GitEnvironment;
}

/** Runs git synchronously and returns its output without the last newline, or `undefined` unless it exits with 0. */
export function gitNow({ cwd, env }: GitPlace, args: readonly string[]): string | undefined {
  const { status, stdout } = spawnSync('git', [...gitArguments('run'), ...args], {
    cwd,
    env: gitEnvironment(env, {}),
    stdio: ['ignore', 'pipe', 'ignore'],
    encoding: 'utf8',
  });
  return status === 0 ? stdout.replace(/\n$/, '') : undefined;
}

/** Error for an exit code that the caller did not expect. */
export const gitFailed = (args: readonly string[], { code, stderr, stdout }: GitResult): RepriseError =>
  new RepriseError(
    'GIT_FAILED',
    `\`${describeCommand(args)}\` exited with ${code}${colon(lastLines(stderr) || lastLines(stdout))}`,
  );

const colon = (text: string): string => (text === '' ? '' : `: ${text}`);

/** Returns the end of an output, where git states the reason. */
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
  readonly environment: GitEnvironment;
  readonly run: RunProgram;
}

async function runGit(args: readonly string[], invocation: Invocation): Promise<GitResult> {
  const { cwd, environment, run, input, signal, hooks = 'run', encoding = 'text' } = invocation;
  signal?.throwIfAborted();
  const decoding = encoding === 'text' ? 'utf8' : 'latin1';
  const ended = await run(['git', ...gitArguments(hooks), ...args], {
    cwd,
    env: environment,
    input: input === undefined ? undefined : Buffer.from(input, decoding),
    signal,
  }).catch((error: unknown) => {
    throw cannotStart(error, { args, cwd });
  });
  signal?.throwIfAborted();
  return {
    code: ended.code,
    stdout: ended.stdout.toString(decoding),
    stderr: ended.stderr.toString('utf8'),
  };
}

function cannotStart(thrown: unknown, { args, cwd }: { args: readonly string[]; cwd: string }): RepriseError {
  const { message, hint } = describeStartFailure(thrown, ['git'], cwd);
  const missing = existsSync(cwd) && thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT';
  if (!missing) return new RepriseError('GIT_FAILED', `\`${describeCommand(args)}\`: ${message}`, { hint });
  return new RepriseError('GIT_NOT_FOUND', 'git is not on the PATH', {
    hint: 'install git 2.38 or newer: https://git-scm.com/downloads',
    cause: thrown,
  });
}

export type GitEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * Variables that point git to a different repository, index or configuration than its folder. They are set if a git hook
 * started Reprise.
 */
const misleading = new Set([
  'GIT_ALTERNATE_OBJECT_DIRECTORIES',
  'GIT_COMMON_DIR',
  'GIT_CONFIG',
  'GIT_CONFIG_COUNT',
  'GIT_CONFIG_PARAMETERS',
  'GIT_DIFF_OPTS',
  'GIT_DIR',
  'GIT_EXTERNAL_DIFF',
  'GIT_GRAFT_FILE',
  'GIT_IMPLICIT_WORK_TREE',
  'GIT_INDEX_FILE',
  'GIT_INDEX_VERSION',
  'GIT_INTERNAL_SUPER_PREFIX',
  'GIT_NAMESPACE',
  'GIT_NO_REPLACE_OBJECTS',
  'GIT_OBJECT_DIRECTORY',
  'GIT_PREFIX',
  'GIT_QUARANTINE_PATH',
  'GIT_REFLOG_ACTION',
  'GIT_REPLACE_REF_BASE',
  'GIT_SHALLOW_FILE',
  'GIT_WORK_TREE',
]);

const fixed: GitEnvironment = {
  LC_ALL: 'C',
  LANGUAGE: 'C',
  TZ: 'UTC',
  GIT_EDITOR: ':',
  GIT_SEQUENCE_EDITOR: ':',
  GIT_MERGE_AUTOEDIT: 'no',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_PAGER: 'cat',
  GIT_TERMINAL_PROMPT: '0',
};

/** Returns the environment of every git command, with the same language, time zone and behaviour on every machine. */
function gitEnvironment(inherited: GitEnvironment, own: GitEnvironment): Record<string, string | undefined> {
  const kept = Object.entries(inherited).filter(
    ([name]) => !misleading.has(name) && !/^GIT_CONFIG_(KEY|VALUE)_/.test(name),
  );
  return { ...Object.fromEntries(kept), ...own, ...fixed };
}

/**
 * Git must not leave a background process that repacks during commits, start a daemon that outlives it, prompt for a
 * passphrase, or follow settings of the user that other machines do not have.
 */
const settings = {
  'gc.auto': '0',
  'gc.autoDetach': 'false',
  'maintenance.auto': 'false',
  'commit.gpgSign': 'false',
  'core.fsmonitor': 'false',
  'merge.autoStash': 'false',
  'merge.verifySignatures': 'false',
  'submodule.recurse': 'false',
  'worktree.guessRemote': 'false',
} as const;

const settingArguments = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]);

/** Returns the arguments between `git` and the command. With `skip`, no code of the repository runs. */
const gitArguments = (hooks: 'run' | 'skip'): readonly string[] =>
  hooks === 'run' ? settingArguments : [...settingArguments, '-c', 'core.hooksPath=/dev/null'];
