import { spawnSync } from 'node:child_process';
import { untrackedFiles, withScratchIndex } from './fast/stage.ts';
import { type Git, type GitEnvironment, gitArguments, gitEnvironment } from './git.ts';
import type { Repository } from './repository.ts';
import { gitInside } from './workspace/entries.ts';

interface DiffRequest {
  readonly repository: Repository;
  /** A commit. */
  readonly base: string;
  /** A commit, or the folder of a worktree with all that is uncommitted in it. */
  readonly head: string | { readonly workspace: string };
  /** Files and folders below the top, taken as they are written; all of them by default. */
  readonly paths?: readonly string[] | undefined;
  /** A line for each file instead of what changed in it. */
  readonly stat?: boolean | undefined;
  readonly color?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The differences as `git diff` prints them, whatever the user's settings are: no program of the repository runs for
 * them. The worktree stays as it is, and so does its index. Throws GIT_FAILED if the base or the head is no commit.
 */
export async function diffOf({ repository, head, ...request }: DiffRequest): Promise<string> {
  if (typeof head === 'string') return print(repository.git, [request.base, head], request);
  const git = gitInside(repository, head.workspace);
  const untracked = (await untrackedFiles(git)).filter(name => !name.endsWith('/'));
  if (untracked.length === 0) return print(git, [request.base], request);
  return withScratchIndex(git, async side => {
    await announce(side, untracked);
    return print(side, [request.base], request);
  });
}

/** Git compares only files that it has been told of. */
async function announce(git: Git, names: readonly string[]): Promise<void> {
  const args = ['add', '--intent-to-add', '--pathspec-from-file=-', '--pathspec-file-nul'];
  await git
    .with({ env: { GIT_LITERAL_PATHSPECS: '1' } })
    .ok(args, { input: names.join('\0'), encoding: 'bytes' });
}

function print(
  git: Git,
  commits: readonly string[],
  { paths = [], stat = false, color = false, signal }: Omit<DiffRequest, 'repository' | 'head'>,
): Promise<string> {
  const args = [
    'diff',
    '--no-ext-diff',
    '--no-textconv',
    '--no-relative',
    '--find-renames',
    '--src-prefix=a/',
    '--dst-prefix=b/',
    '--submodule=short',
    color ? '--color=always' : '--color=never',
    stat ? '--stat' : '--patch',
    '--end-of-options',
    ...commits,
    '--',
    ...paths,
  ];
  return git.with({ env: { GIT_LITERAL_PATHSPECS: '1' } }).ok(args, { signal });
}

type ChangeKind = 'added' | 'copied' | 'deleted' | 'modified' | 'renamed' | 'type-changed' | 'other';

interface FileChange {
  readonly kind: ChangeKind;
  readonly path: string;
  /** Where a renamed or copied file was. */
  readonly from?: string | undefined;
}

interface Changes {
  readonly files: readonly FileChange[];
  readonly insertions: number;
  readonly deletions: number;
  /** For people to read, up to the limit; binary files are named only. */
  readonly patch: { readonly text: string; readonly truncated: boolean };
}

interface ChangesOptions {
  /** The commit to compare with what is checked out. */
  readonly base: string;
  readonly patchLimit?: number | undefined;
}

const kinds: Readonly<Record<string, ChangeKind>> = {
  A: 'added',
  C: 'copied',
  D: 'deleted',
  M: 'modified',
  R: 'renamed',
  T: 'type-changed',
};

/** What the commits of a workspace changed since they began. Throws GIT_FAILED if the base is no commit. */
export async function changesSince(
  git: Git,
  { base, patchLimit = 1024 * 1024 }: ChangesOptions,
): Promise<Changes> {
  const diff = ['diff', '--no-ext-diff', '--no-textconv', '--no-color', '--find-renames'];
  const range = ['--end-of-options', base, 'HEAD', '--'];
  const [names, stat, patch] = await Promise.all([
    git.ok([...diff, '--name-status', '-z', ...range]),
    git.ok([...diff, '--shortstat', ...range]),
    git.ok([...diff, '--patch', '--src-prefix=a/', '--dst-prefix=b/', ...range]),
  ]);
  return {
    files: parseNameStatus(names),
    insertions: countOf(stat, /(\d+) insertion/),
    deletions: countOf(stat, /(\d+) deletion/),
    patch: { text: patch.slice(0, patchLimit), truncated: patch.length > patchLimit },
  };
}

export interface ChangeCounts {
  readonly files: number;
  readonly insertions: number;
  readonly deletions: number;
}

/** How much changed since the commits of a workspace began, without what. */
export async function changeCounts(git: Git, base: string): Promise<ChangeCounts> {
  const diff = ['diff', '--no-ext-diff', '--no-textconv', '--no-color', '--find-renames', '--shortstat'];
  return countsIn(await git.ok([...diff, '--end-of-options', base, 'HEAD', '--']));
}

/**
 * How much changed in a commit, as `git commit` itself says. `undefined` where it counts in another way than `git diff`:
 * a file that was written anew counts there with all of its lines, also as the source of a rename.
 */
export function printedCounts(printed: string): ChangeCounts | undefined {
  const line = /^ \d+ files? changed.*$/m.exec(printed)?.[0];
  return line === undefined || /^ (rewrite|rename|copy) /m.test(printed) ? undefined : countsIn(line);
}

const countsIn = (stat: string): ChangeCounts => ({
  files: countOf(stat, /(\d+) file/),
  insertions: countOf(stat, /(\d+) insertion/),
  deletions: countOf(stat, /(\d+) deletion/),
});

function parseNameStatus(output: string): readonly FileChange[] {
  const fields = output.split('\0');
  const files: FileChange[] = [];
  for (let at = 0; at + 1 < fields.length; ) {
    const kind = kinds[fields[at]?.charAt(0) ?? ''] ?? 'other';
    const two = kind === 'renamed' || kind === 'copied';
    const [first = '', second = ''] = fields.slice(at + 1, at + 3);
    files.push(two ? { kind, path: second, from: first } : { kind, path: first });
    at += two ? 3 : 2;
  }
  return files;
}

const countOf = (text: string, pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? 0);

/** Prints nothing if none of the files, as they are called from the top, differs from what is checked out. */
const statusOf = (files: readonly string[]): readonly string[] => [
  ...['status', '--porcelain=v2', '-z', '--no-renames', '--untracked-files=all', '--'],
  ...files.map(file => `:(top,literal)${file}`),
];

/** Whether any of the files has changes that are not committed. At least one has to be named. */
export const anyChanged = async (git: Git, files: readonly string[]): Promise<boolean> =>
  (await git.ok(statusOf(files))) !== '';

/** The same for somebody who decides at once. Whatever git cannot tell counts as unchanged: `anyChanged` throws it. */
export function anyChangedNow(
  { cwd, env }: { readonly cwd: string; readonly env: GitEnvironment },
  files: readonly string[],
): boolean {
  const { status, stdout } = spawnSync('git', [...gitArguments('run'), ...statusOf(files)], {
    cwd,
    env: gitEnvironment(env, {}),
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return status === 0 && stdout.length > 0;
}
