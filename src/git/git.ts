import { existsSync } from 'node:fs';
import { RepriseError } from '../core/index.ts';
import { describeStartFailure, type RunProgram, runProgram } from '../process/index.ts';

export interface GitOptions {
  /** The folder in which the commands run. */
  readonly cwd: string;
  /** Added to what is inherited. */
  readonly env?: GitEnvironment | undefined;
  /** What git gets to see of the user's environment; nothing by default. */
  readonly inheritEnv?: GitEnvironment | undefined;
  /** Starts it; this process does unless it is said. */
  readonly runProgram?: RunProgram | undefined;
}

interface GitCommandOptions {
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
  return new RepriseError('GIT_NOT_FOUND', 'there is no git on the PATH', {
    hint: 'install git 2.38 or newer: https://git-scm.com/downloads',
    cause: thrown,
  });
}

export type GitEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * Variables that lead git to another repository, index or configuration than the folder says. They are set when
 * Reprise itself was started by a git hook.
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

/** The environment of every git command: the same words, times and manners wherever Reprise runs. */
export function gitEnvironment(
  inherited: GitEnvironment,
  own: GitEnvironment,
): Record<string, string | undefined> {
  const kept = Object.entries(inherited).filter(
    ([name]) => !misleading.has(name) && !/^GIT_CONFIG_(KEY|VALUE)_/.test(name),
  );
  return { ...Object.fromEntries(kept), ...own, ...fixed };
}

/**
 * Git must leave no process behind that repacks while others commit, start no daemon that outlives it, ask nobody
 * for a passphrase, and not follow a user's settings into behaviour that other machines do not have.
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

/** What stands between `git` and the command. Without hooks, no code of the repository runs. */
export const gitArguments = (hooks: 'run' | 'skip'): readonly string[] =>
  hooks === 'run' ? settingArguments : [...settingArguments, '-c', 'core.hooksPath=/dev/null'];
