import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { RepriseError } from '../core/index.ts';
import { describeStartFailure, processesNamed, type RunProgram, runProgram } from '../process/index.ts';
import { readIfThere, removeIfThere } from './files.ts';
import { shellWord } from './names.ts';

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

type Asked =
  | { readonly ok: true; readonly output: string }
  /** `isOutside`: git works, and the folder is in no repository. */
  | { readonly ok: false; readonly isOutside: boolean; readonly why: string };

/** Like `gitNow`, but tells why git gave no answer. */
export function askGitNow({ cwd, env }: GitPlace, args: readonly string[]): Asked {
  const { status, stdout, stderr, error } = spawnSync('git', [...gitArguments('run'), ...args], {
    cwd,
    env: { ...gitEnvironment(env, {}), LC_ALL: 'C' },
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
  });
  if (status === 0) return { ok: true, output: stdout.replace(/\n$/, '') };
  if (error)
    return { ok: false, isOutside: !hasGitFolder(cwd), why: `git cannot be started: ${error.message}` };
  // Git also says "not a git repository: <path>" of a worktree or a GIT_DIR whose repository is missing.
  const isOutside = /^fatal: not a git repository \(or any/m.test(stderr);
  return { ok: false, isOutside, why: lastLines(stderr) };
}

function hasGitFolder(start: string): boolean {
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, '.git'))) return true;
    if (dirname(folder) === folder) return false;
  }
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

/**
 * Runs git, and runs it again if only a lock of Reprise that a killed command left has stopped it. Git takes such a lock
 * before it changes anything.
 */
async function runGit(args: readonly string[], invocation: Invocation): Promise<GitResult> {
  for (let tries = 1; ; tries++) {
    const result = await runOnce(args, invocation);
    const lock = result.code === 0 ? undefined : lockIn(result.stderr);
    if (lock === undefined || tries > 5 || !isOwnLock(lock) || !(await removeStaleLock(lock))) return result;
  }
}

async function runOnce(args: readonly string[], invocation: Invocation): Promise<GitResult> {
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

type GitEnvironment = Readonly<Record<string, string | undefined>>;

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
  'GIT_GLOB_PATHSPECS',
  'GIT_GRAFT_FILE',
  'GIT_ICASE_PATHSPECS',
  'GIT_IMPLICIT_WORK_TREE',
  'GIT_INDEX_FILE',
  'GIT_INDEX_VERSION',
  'GIT_INTERNAL_SUPER_PREFIX',
  'GIT_LITERAL_PATHSPECS',
  'GIT_NAMESPACE',
  'GIT_NOGLOB_PATHSPECS',
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
  // Git shows progress after two seconds, even on a pipe that a killed process has left.
  GIT_PROGRESS_DELAY: '1000000',
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
 * passphrase, or follow settings of the user that change what a command does or prints. An event that names a commit is
 * appended after git has synced its objects, ref and index.
 */
const settings = {
  'gc.auto': '0',
  'gc.autoDetach': 'false',
  'maintenance.auto': 'false',
  'add.ignoreErrors': 'false',
  'color.ui': 'false',
  'commit.gpgSign': 'false',
  'core.fsmonitor': 'false',
  'core.fsync': 'committed,derived-metadata,index',
  'core.fsyncMethod': 'fsync',
  'core.ignoreStat': 'false',
  'core.safecrlf': 'false',
  'i18n.commitEncoding': 'UTF-8',
  'log.showSignature': 'false',
  'merge.autoStash': 'false',
  'merge.verifySignatures': 'false',
  'submodule.recurse': 'false',
  'worktree.guessRemote': 'false',
} as const;

const settingArguments = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]);

/** Returns the arguments between `git` and the command. With `skip`, no code of the repository runs. */
const gitArguments = (hooks: 'run' | 'skip'): readonly string[] =>
  hooks === 'run' ? settingArguments : [...settingArguments, '-c', 'core.hooksPath=/dev/null'];

/** Time for which an abandoned lock must stay unchanged, and for which a lock in use is waited for. */
const times = { stillMs: 500, patienceMs: 10_000, pollMs: 25 };

/** Returns the lock file that stopped a git command, according to its message. */
export const lockIn = (stderr: string): string | undefined =>
  /Unable to create '(\/[^\n]+\.lock)': File exists/.exec(stderr)?.[1];

/**
 * Whether only Reprise uses a lock: that of a branch or ref of Reprise, or one in the private git folder of a worktree that
 * Reprise made.
 */
const isOwnLock = (file: string): boolean =>
  /\/refs\/(heads\/)?reprise\/.+\.lock$/.test(file) ||
  (/\/worktrees\/[^/]+\/[A-Za-z_]+\.lock$/.test(file) &&
    (readIfThere(`${dirname(file)}${sep}locked`) ?? '').startsWith('reprise '));

/**
 * Removes a lock file that a killed git command left. Keeps it, and returns `false`, if it changes meanwhile, or if a git
 * command that has been running all the time works below the folder. The caller knows that the owner of the lock is dead.
 */
export async function removeStaleLock(file: string, folder = repositoryOf(file)): Promise<boolean> {
  const began = performance.now();
  let seen = identityOf(file);
  let still = began;
  let users = commandsBelow(folder);
  while (seen !== undefined) {
    await delay(times.pollMs);
    const now = performance.now();
    const current = identityOf(file);
    if (current !== seen) {
      seen = current;
      still = now;
      users = commandsBelow(folder);
      continue;
    }
    const alive = commandsBelow(folder);
    users = new Set([...users].filter(each => alive.has(each)));
    if (now - still >= times.stillMs && users.size === 0) removeIfThere(file);
    else if (now - began >= times.patienceMs) return false;
  }
  return true;
}

/** Folder of the repository that a lock belongs to. */
const repositoryOf = (file: string): string =>
  (/^(.*?)(\/\.git)?\/(refs\/|worktrees\/|packed-refs\.lock$)/.exec(file)?.[1] ?? dirname(file)) || sep;

/** Git commands that may work below a folder. One whose folder is unknown counts. */
const commandsBelow = (folder: string): ReadonlySet<string> =>
  new Set(
    [...processesNamed('git')].flatMap(([identity, cwd]) =>
      cwd === undefined || cwd === folder || cwd.startsWith(`${folder}${sep}`) ? identity : [],
    ),
  );

/** Changes whenever the file is written or made again. */
function identityOf(file: string): string | undefined {
  const stat = statSync(file, { throwIfNoEntry: false, bigint: true });
  return stat && `${stat.ino} ${stat.ctimeNs} ${stat.size}`;
}

/** Describes a lock that may belong to a running command, with the command that removes it. */
export function describeLock(file: string): { readonly why: string; readonly hint: string } {
  const changed = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
  const seconds = Math.max(0, Math.round((Date.now() - changed) / 1000));
  return {
    why: `another git command holds the lock ${file}, or left it when it was killed; the lock is ${seconds} s old`,
    hint: `wait for that command; if no git command is running, remove the lock: rm ${shellWord(file)}`,
  };
}

/** Removes the last newline only, because a path may contain newlines. */
export const withoutNewline = (text: string): string => text.replace(/\n$/, '');
