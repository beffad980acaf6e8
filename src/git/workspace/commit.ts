import { closeSync, copyFileSync, existsSync, openSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { RepriseError, type Timestamp, toEpochMs } from '../../core/index.ts';
import { type ChangeCounts, printedCounts } from '../diff.ts';
import { copyIndex, stageQuickly, trustIndex, untrackedFiles } from '../fast/stage.ts';
import { hasCode } from '../files.ts';
import { type Git, type GitResult, gitFailed } from '../git.ts';
import { removeIfThere } from '../lock-file.ts';
import { printable, shellWord } from '../names.ts';
import { type GitFolders, headCommit } from '../refs.ts';

interface CommitAllRequest {
  /** In the workspace. */
  readonly git: Git;
  /** Of the workspace. With them, less has to be asked of git. */
  readonly folders?: GitFolders | undefined;
  /** The commit from which to count what has changed. */
  readonly since?: string | undefined;
  readonly message: string;
  readonly author: { readonly name: string; readonly email: string };
  readonly at: Timestamp;
  readonly signal?: AbortSignal | undefined;
}

/** What is checked out afterwards, and whether a commit was made for it. */
export type CommitResult = { readonly commit: string; readonly branch: string | undefined } & (
  | { readonly kind: 'clean' }
  | {
      readonly kind: 'committed';
      /** The only parent of the commit; undefined if it has none, or may have several. */
      readonly parent: string | undefined;
      /** What has changed since the commit to count from; undefined if that is not known. */
      readonly changes: ChangeCounts | undefined;
    }
);

/**
 * Commits everything that was left uncommitted, whatever hooks would say. Throws WORKSPACE_FAILED, having changed
 * nothing, if conflicts are unresolved, or if another repository is inside, because a commit would not hold its files.
 */
export async function commitAll(request: CommitAllRequest): Promise<CommitResult> {
  const { git, folders, since, signal } = request;
  const isWanted = ({ unmerged, embedded, uncommitted, head }: WorktreeStatus): boolean => {
    if (unmerged.length > 0) throw unfinished(git, unmerged);
    if (embedded.length > 0) throw otherRepository(git, embedded);
    return uncommitted.length > 0 || head === undefined;
  };
  const { head, branch, isStaged } = await stageAll({ git, folders, isWanted, signal });
  if (head !== undefined && !isStaged) return { kind: 'clean', commit: head, branch };
  // A commit that ends a merge has the merged ones as parents too.
  const isMerge = folders === undefined || existsSync(join(folders.gitDir, 'MERGE_HEAD'));
  const result = await commitStaged(request);
  // What differed may have come to nothing, such as the ends of lines that git itself converts.
  if (result.code !== 0 && head !== undefined && (await isNothingStaged(git)))
    return { kind: 'clean', commit: head, branch };
  if (result.code !== 0) throw gitFailed(commitCommand(request.message), result);
  const commit = await headCommit(git, folders);
  const parent = isMerge ? undefined : head;
  const changes = since !== undefined && since === parent ? printedCounts(result.stdout) : undefined;
  return { kind: 'committed', commit, branch, parent, changes };
}

/** If this process is killed before it has told the message, there must be no commit: git would take nothing for empty. */
const commitCommand = (message: string): readonly string[] => [
  ...['commit', '--cleanup=whitespace', '--file=-'],
  ...(message.trim() === '' ? ['--allow-empty-message'] : []),
];

/** Everything in the index was read a moment ago, when it was staged: it need not be read again. */
async function commitStaged({ git, folders, ...request }: CommitAllRequest): Promise<GitResult> {
  if (folders === undefined) return commitIndex(git, request);
  const copy = join(folders.gitDir, 'reprise-commit-index');
  const clear = () => [copy, `${copy}.lock`].forEach(removeIfThere);
  // A process that was killed leaves its own.
  clear();
  try {
    copyFileSync(join(folders.gitDir, 'index'), copy);
    trustIndex(copy);
    return await commitIndex(git.with({ env: { GIT_INDEX_FILE: copy } }), request);
  } finally {
    clear();
  }
}

type CommitDetails = Pick<CommitAllRequest, 'message' | 'author' | 'at' | 'signal'>;

function commitIndex(git: Git, { message, author, at, signal }: CommitDetails): Promise<GitResult> {
  const date = `@${Math.floor(toEpochMs(at) / 1000)} +0000`;
  const identity = {
    GIT_AUTHOR_NAME: author.name,
    GIT_AUTHOR_EMAIL: author.email,
    GIT_AUTHOR_DATE: date,
    GIT_COMMITTER_NAME: author.name,
    GIT_COMMITTER_EMAIL: author.email,
    GIT_COMMITTER_DATE: date,
  };
  return git.with({ env: identity }).run(commitCommand(message), { input: message, hooks: 'skip', signal });
}

const isNothingStaged = async (git: Git): Promise<boolean> =>
  (await git.run(['diff', '--cached', '--quiet', '--no-ext-diff'])).code === 0;

const unfinished = (git: Git, files: readonly string[]): RepriseError =>
  new RepriseError(
    'WORKSPACE_FAILED',
    `a merge in ${git.cwd} is unfinished: ${files.map(printable).join(', ')}`,
    { hint: `finish it, or give it up: git -C ${shellWord(git.cwd)} merge --abort` },
  );

/** Git would keep only the name of a commit in it, and nothing at all if it has none. */
const otherRepository = (git: Git, folders: readonly string[]): RepriseError =>
  new RepriseError(
    'WORKSPACE_FAILED',
    `there is another repository in ${git.cwd}: ${folders.map(printable).join(', ')}`,
    { hint: 'move it out of the workspace, or remove its .git folder to commit its files' },
  );

/** Throws WORKSPACE_FAILED if another repository is inside. */
export async function refuseEmbedded(git: Git): Promise<void> {
  const folders = (await untrackedFiles(git)).filter(name => name.endsWith('/')).map(asText);
  if (folders.length > 0) throw otherRepository(git, folders);
}

const asText = (bytes: string): string => Buffer.from(bytes, 'latin1').toString();

interface StageRequest {
  /** In the worktree. */
  readonly git: Git;
  /** Of the worktree, if they are known. */
  readonly folders: GitFolders | undefined;
  /** Whether all is to be staged, now that it is known how the worktree stands. What it throws is thrown. */
  readonly isWanted: (status: WorktreeStatus) => boolean;
  readonly signal?: AbortSignal | undefined;
}

/** What is checked out, and whether all of the worktree is staged now. */
type Staging = Pick<WorktreeStatus, 'head' | 'branch'> & { readonly isStaged: boolean };

const addAll = ['add', '--all'];

/** Stages everything that was left uncommitted, if that is wanted; else nothing is changed. Throws GIT_FAILED. */
async function stageAll(request: StageRequest): Promise<Staging> {
  const { git, folders, isWanted, signal } = request;
  if (folders !== undefined) return stageBeside({ ...request, folders });
  const status = await worktreeStatus(git);
  const isStaged = isWanted(status);
  if (isStaged) await git.ok(addAll, { signal });
  return { ...status, isStaged };
}

type StageBesideRequest = StageRequest & { readonly folders: GitFolders };

/** What is added goes to an index beside, which takes the place of the real one once it is wanted. */
async function stageBeside(request: StageBesideRequest): Promise<Staging> {
  const { git, folders, signal } = request;
  const index = join(folders.gitDir, 'index');
  const beside = join(folders.gitDir, 'reprise-index');
  const clear = () => [beside, `${beside}.lock`].forEach(removeIfThere);
  // A process that was killed leaves its own.
  clear();
  try {
    const quick = await stageQuickly({ git, folders, index, beside, signal });
    const staging = quick
      ? { head: quick.commit, branch: quick.branch, isStaged: true }
      : await stageCarefully(request, { index, beside });
    // Whoever else has the index now may have changed it: git itself then says what is in the way.
    if (staging.isStaged && !replaceIndex(index, beside)) await git.ok(addAll, { signal });
    return staging;
  } finally {
    clear();
  }
}

/**
 * To look and to add both take as long as it takes to read every file that may have changed, so both are done at once.
 */
async function stageCarefully(
  { git, isWanted, signal }: StageBesideRequest,
  { index, beside }: { readonly index: string; readonly beside: string },
): Promise<Staging> {
  copyIndex(index, beside);
  // The one that takes longer is started first.
  const [added, looked] = await Promise.allSettled([
    git.with({ env: { GIT_INDEX_FILE: beside } }).run(addAll, { signal }),
    worktreeStatus(git),
  ]);
  const status = settledValue(looked);
  // Git refuses to add some of what we refuse ourselves, with better words.
  if (!isWanted(status)) return { ...status, isStaged: false };
  const result = settledValue(added);
  if (result.code !== 0) throw gitFailed(addAll, result);
  return { ...status, isStaged: true };
}

/** As git does it, under the lock of the index; `false` if somebody has that. */
function replaceIndex(index: string, beside: string): boolean {
  const lock = `${index}.lock`;
  try {
    closeSync(openSync(lock, 'wx'));
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  }
  try {
    renameSync(beside, index);
  } finally {
    removeIfThere(lock);
  }
  return true;
}

function settledValue<T>(settled: PromiseSettledResult<T>): T {
  if (settled.status === 'rejected') throw settled.reason;
  return settled.value;
}

interface WorktreeStatus {
  /** Paths that differ from what is checked out, and untracked ones, by name; what git ignores is not among them. */
  readonly uncommitted: readonly string[];
  /** Those of them that a merge left unresolved. */
  readonly unmerged: readonly string[];
  /** Those of them that are repositories of their own. */
  readonly embedded: readonly string[];
  /** The commit that is checked out; undefined before the first. */
  readonly head: string | undefined;
  /** The branch that is checked out. */
  readonly branch: string | undefined;
  /** The commit of a HEAD that is on no branch. */
  readonly detachedAt: string | undefined;
}

/** How a worktree stands, or one folder of it, from its top. Changes nothing, not even the index. */
export async function worktreeStatus(git: Git, folder?: string): Promise<WorktreeStatus> {
  const within = folder === undefined ? [] : ['--', `:(top,literal)${folder}`];
  const args = [
    'status',
    '--porcelain=v2',
    '--branch',
    '-z',
    '--no-renames',
    '--untracked-files=all',
    ...within,
  ];
  const lines = (await git.ok(args)).split('\0').filter(line => line !== '');
  const header = (name: string) => lines.find(line => line.startsWith(`# ${name} `))?.slice(name.length + 3);
  const pathsOf = (wanted: (line: string) => boolean) =>
    lines.filter(wanted).flatMap(line => pathIn(line) ?? []);
  const name = header('branch.head');
  const oid = header('branch.oid');
  const head = oid === '(initial)' ? undefined : oid;
  const isDetached = name === '(detached)';
  return {
    uncommitted: pathsOf(() => true).sort(),
    unmerged: pathsOf(line => line.startsWith('u ')),
    embedded: pathsOf(line => line.startsWith('? ') && line.endsWith('/')),
    head,
    branch: isDetached ? undefined : name,
    detachedAt: isDetached ? head : undefined,
  };
}

export const uncommittedFiles = async (git: Git): Promise<readonly string[]> =>
  (await worktreeStatus(git)).uncommitted;

/** The path follows a number of fields that depends on the kind of entry, and may hold spaces itself. */
const fieldsBefore: Readonly<Record<string, number>> = { '1': 8, u: 10, '?': 1 };

function pathIn(line: string): string | undefined {
  const fields = fieldsBefore[line.charAt(0)];
  return fields === undefined ? undefined : line.split(' ').slice(fields).join(' ');
}
