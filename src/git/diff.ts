import { type Git, type GitPlace, gitNow } from './git.ts';
import type { Repository } from './repository.ts';
import { untrackedFiles, withScratchIndex } from './scratch-index.ts';
import { gitInside } from './workspace/entries.ts';

interface DiffRequest {
  readonly repository: Repository;
  /** Base commit. */
  readonly base: string;
  /** Commit, or folder of a worktree with its uncommitted changes. */
  readonly head: string | { readonly workspace: string };
  /** Literal paths relative to the root of the worktree. Defaults to all files. */
  readonly paths?: readonly string[] | undefined;
  /** Whether to print one line per file instead of a patch. */
  readonly stat?: boolean | undefined;
  readonly color?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Returns the output of `git diff`, independent of the user's settings and without running programs from the
 * repository. The worktree and its index stay unchanged. Throws GIT_FAILED if the base or the head is not a commit.
 */
export async function diffOf({ repository, head, ...request }: DiffRequest): Promise<string> {
  if (typeof head === 'string') return print(repository.git, [request.base, head], request);
  const git = gitInside(repository, head.workspace);
  const untracked = (await untrackedFiles(git)).filter(name => !name.endsWith('/'));
  if (untracked.length === 0) return print(git, [request.base], request);
  return withScratchIndex(git, async side => {
    await intendToAdd(side, untracked);
    return print(side, [request.base], request);
  });
}

/** Git compares only files that are in the index. */
async function intendToAdd(git: Git, names: readonly string[]): Promise<void> {
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
  /** Original path of a renamed or copied file. */
  readonly from?: string | undefined;
}

interface Changes {
  readonly files: readonly FileChange[];
  readonly insertions: number;
  readonly deletions: number;
  /** Patch for people to read, up to the limit, without the contents of binary files. */
  readonly patch: { readonly text: string; readonly truncated: boolean };
}

interface ChangesOptions {
  /** Commit to compare HEAD with. */
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

/** Returns the changes from the base to HEAD. Throws GIT_FAILED if the base is not a commit. */
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

/** Counts the changes from the base to HEAD. */
export async function changeCounts(git: Git, base: string): Promise<ChangeCounts> {
  const diff = ['diff', '--no-ext-diff', '--no-textconv', '--no-color', '--find-renames', '--shortstat'];
  return countsIn(await git.ok([...diff, '--end-of-options', base, 'HEAD', '--']));
}

/**
 * Parses the counts that `git commit` prints. Returns `undefined` if `git diff` would count differently: `git commit`
 * counts all lines of a rewritten file, even of one that is the source of a rename.
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

/** Returns a git command that prints nothing if no file, relative to the root of the worktree, has uncommitted changes. */
const statusOf = (files: readonly string[]): readonly string[] => [
  ...['status', '--porcelain=v2', '-z', '--no-renames', '--untracked-files=all', '--'],
  ...files.map(file => `:(top,literal)${file}`),
];

/** Whether any of the files has uncommitted changes. Requires at least one file. */
export const anyChanged = async (git: Git, files: readonly string[]): Promise<boolean> =>
  (await git.ok(statusOf(files))) !== '';

/** Synchronous `anyChanged`. Returns `false` if git fails, where `anyChanged` throws. */
export const anyChangedNow = (place: GitPlace, files: readonly string[]): boolean =>
  (gitNow(place, statusOf(files)) ?? '') !== '';
