import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import type { Owner } from '../../store/index.ts';
import { parseRecord, readIfThere, removeIfThere, replaceFile } from '../files.ts';
import { type Git, lockIn, removeStaleLock } from '../git.ts';
import { type LockPatience, withRepositoryLock } from '../lock.ts';
import { branchTip } from '../refs.ts';
import type { Repository } from '../repository.ts';
import { type BranchRecord, forgetBranch, park, parkedBranch, readBranchRecord } from './branch-records.ts';
import { worktreeStatus } from './commit.ts';
import {
  allWorktrees,
  gitInside,
  intendedLabel,
  intendWorktree,
  ownRepository,
  realPath,
  submodulesWithOwnCommits,
  type WorktreeEntry,
  type WorktreeLabel,
  worktreeConditionAt,
} from './entries.ts';
import { discardWorktree } from './worktree.ts';

interface RemoveRequest extends LockPatience {
  readonly repository: Repository;
  readonly owner: Owner;
  readonly path: string;
  /** Branch of the workspace, if known: a process that died while it removed the workspace may have left the branch. */
  readonly branch?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export type Removal =
  | {
      readonly kind: 'removed';
      /** Outcome for the branch; `undefined` if there was no workspace and no branch was given. */
      readonly branch: BranchFate | undefined;
      /** Branch that was made for commits of a detached HEAD. */
      readonly parked: ParkedCommits | undefined;
    }
  /** Nothing was removed. Files include submodules with commits that exist nowhere else. */
  | { readonly kind: 'uncommitted-changes'; readonly files: readonly string[] };

export interface ParkedCommits {
  readonly branch: string;
  readonly commit: string;
  readonly commits: number;
}

/**
 * Removes a workspace and, if all its commits exist elsewhere, its branch. Otherwise the commits stay on a branch that the
 * result names. Refuses while there are uncommitted changes. Throws WORKSPACE_FAILED if Reprise did not make the workspace.
 */
export function removeWorkspace(request: RemoveRequest): Promise<Removal> {
  return withRepositoryLock({ ...request, name: 'worktrees' }, ({ repository }) =>
    remove(standsOutside(repository, request.path), request),
  );
}

/** Runs git outside the folder that is deleted. */
function standsOutside(repository: Repository, path: string): Repository {
  const { root, commonDir, git } = repository;
  const isInside = root !== undefined && `${root}/`.startsWith(`${realPath(path)}/`);
  return isInside ? { ...repository, git: git.with({ cwd: commonDir }) } : repository;
}

async function remove(
  repository: Repository,
  { path, branch }: Pick<RemoveRequest, 'path' | 'branch'>,
): Promise<Removal> {
  const worktrees = await allWorktrees(repository);
  const place = realPath(path);
  const entry = worktrees.slice(1).find(each => each.path === place);
  if (entry?.label === undefined) {
    const intended = intendedLabel(repository, path);
    if (entry === undefined && (intended || !existsSync(path))) {
      if (intended) await discardWorktree(repository, { path, label: intended });
      const fate = branch === undefined ? undefined : await tidyBranch(repository, branch);
      return { kind: 'removed', branch: fate, parked: undefined };
    }
    throw new RepriseError('WORKSPACE_FAILED', `${path} is not a workspace that Reprise made`);
  }
  const labelled = { ...entry, label: entry.label };
  const state = await worktreeConditionAt(repository, entry.path);
  switch (state.kind) {
    case 'finished':
      return removeFinished(repository, { worktrees, entry: labelled, gitDir: state.gitDir });
    case 'unfinished':
      return discard(repository, { worktrees, entry: labelled });
    case 'foreign':
      return { kind: 'uncommitted-changes', files: ['.git/'] };
  }
}

interface RemovedWorktree {
  readonly worktrees: readonly WorktreeEntry[];
  /** Worktree to remove. */
  readonly entry: WorktreeEntry & { readonly label: WorktreeLabel };
}

async function removeFinished(
  repository: Repository,
  { gitDir, ...removed }: RemovedWorktree & { readonly gitDir: string },
): Promise<Removal> {
  const [{ uncommitted }, submodules] = await Promise.all([
    worktreeStatus(gitInside(repository, removed.entry.path)),
    submodulesWithOwnCommits(repository.git, gitDir),
  ]);
  const files = [...uncommitted, ...submodules, ...ownRepository(removed.entry.path)];
  if (files.length > 0) return { kind: 'uncommitted-changes', files };
  return discard(repository, removed);
}

/** Removes a worktree without uncommitted changes, and its branch if all its commits exist elsewhere. */
async function discard(repository: Repository, { worktrees, entry }: RemovedWorktree): Promise<Removal> {
  const parked = await parkHead(repository, entry);
  const { branch } = entry.label;
  const others = worktrees.filter(each => each.path !== entry.path);
  const status = branch === undefined ? undefined : await branchStatus(repository, branch, { entry, others });
  // First: without its branch, all files of a worktree look like uncommitted changes.
  intendWorktree(repository, entry);
  const [fate] = await Promise.all([
    branch === undefined || status === undefined
      ? undefined
      : tidy(repository, branch, { ...status, others }),
    discardWorktree(repository, entry),
  ]);
  return { kind: 'removed', branch: fate, parked };
}

/** Parks commits of a detached HEAD that no branch has. */
async function parkHead({ git }: Repository, entry: WorktreeEntry): Promise<ParkedCommits | undefined> {
  const { path, label, commit, branch: current } = entry;
  if (commit === undefined || current !== undefined) return undefined;
  const commits = await commitsNowhereElse(git, commit);
  if (commits === 0) return undefined;
  const branch = parkedBranch(label?.branch ?? path, commit);
  await park(git, `refs/heads/${branch}`, commit);
  return { branch, commit, commits };
}

/** Counts the commits of a tip that no branch, tag or remote branch has, apart from the branch `besides`. */
export async function commitsNowhereElse(git: Git, tip: string, besides?: string): Promise<number> {
  const exclude = besides === undefined ? [] : [`--exclude=${besides}`];
  const count = await git.line([
    'rev-list',
    '--count',
    tip,
    '--not',
    ...exclude,
    '--branches',
    '--tags',
    '--remotes',
  ]);
  return Number(count);
}

/** Like `commitsNowhereElse` for a branch of Reprise, but commits that landed as other commits do not count. */
export async function unlandedCommits(git: Git, tip: string, record: BranchRecord): Promise<number> {
  const count = await commitsNowhereElse(git, tip, record.branch);
  if (count === 0 || record.landed?.tip !== tip) return count;
  return (await commitsNowhereElse(git, record.landed.commit, record.branch)) === 0 ? 0 : count;
}

/** Outcome of the attempt to delete a branch. */
export type BranchFate =
  | { readonly kind: 'deleted'; readonly branch: string; readonly tip: string }
  | {
      readonly kind: 'kept';
      readonly branch: string;
      readonly tip: string;
      readonly commits: number;
      readonly why: KeptBecause;
    }
  | { readonly kind: 'gone'; readonly branch: string };

export type KeptBecause =
  | 'not made by Reprise'
  | 'unlanded commits'
  | 'checked out'
  | 'locked by a git command'
  | 'it moved';

interface BranchStatus {
  readonly tip: string | undefined;
  /** Number of commits that exist nowhere else. */
  readonly commits: number;
}

interface KnownWorktrees {
  /** Worktree that is being removed. */
  readonly entry?: WorktreeEntry;
  readonly others: readonly WorktreeEntry[];
}

async function branchStatus(
  repository: Repository,
  branch: string,
  { entry, others }: KnownWorktrees,
): Promise<BranchStatus> {
  const { git } = repository;
  const tip = entry?.branch === branch ? entry.commit : await branchTip(repository, branch);
  if (tip === undefined) return { tip, commits: 0 };
  // Most workspaces without commits are at the tip of another branch that is checked out: no need to ask git.
  const isElsewhere = others.some(
    other => other.commit === tip && other.branch !== undefined && other.branch !== branch,
  );
  if (isElsewhere) return { tip, commits: 0 };
  const record = readBranchRecord(repository, branch);
  const commits = await (record ? unlandedCommits(git, tip, record) : commitsNowhereElse(git, tip, branch));
  return { tip, commits };
}

/**
 * Deletes a branch that Reprise made, if all its commits exist elsewhere. Requires the `worktrees` lock: two branches
 * with the same commits, each deleted because of the other, would lose them.
 */
export async function tidyBranch(repository: Repository, branch: string): Promise<BranchFate> {
  const others = await allWorktrees(repository);
  return tidy(repository, branch, { ...(await branchStatus(repository, branch, { others })), others });
}

async function tidy(
  repository: Repository,
  branch: string,
  { tip, commits, others }: BranchStatus & { readonly others: readonly WorktreeEntry[] },
): Promise<BranchFate> {
  await settleDeletion(repository);
  if (tip === undefined) {
    forgetBranch(repository, branch);
    return { kind: 'gone', branch };
  }
  const kept = (why: KeptBecause): BranchFate => ({ kind: 'kept', branch, tip, commits, why });
  if (readBranchRecord(repository, branch) === undefined) return kept('not made by Reprise');
  if (commits > 0) return kept('unlanded commits');
  if (others.some(other => other.branch === branch)) return kept('checked out');
  const args = ['update-ref', '--no-deref', '-d', `refs/heads/${branch}`, tip];
  intendDeletion(repository, branch);
  const { code, stderr } = await repository.git.run(args, { hooks: 'skip' });
  removeIfThere(deletionFile(repository));
  // Git refuses if the branch has moved, and then it has commits that were not counted.
  if (code !== 0) return kept(lockIn(stderr) === undefined ? 'it moved' : 'locked by a git command');
  forgetBranch(repository, branch);
  return { kind: 'deleted', branch, tip };
}

/** File that names the branch that is being deleted, with the lock files that existed before. */
const deletionFile = ({ commonDir }: Repository): string => join(commonDir, 'reprise', 'deleting.json');

/** Lock files that git takes to delete a branch. */
const locksOf = ({ commonDir }: Repository, branch: string): readonly string[] => [
  join(commonDir, 'packed-refs.lock'),
  join(commonDir, 'refs', 'heads', `${branch}.lock`),
];

const intendDeletion = (repository: Repository, branch: string): void =>
  replaceFile(
    deletionFile(repository),
    `${JSON.stringify({ branch, locks: locksOf(repository, branch).filter(existsSync) })}\n`,
  );

/**
 * Removes the lock files that git left if it was killed while it deleted a branch. Requires the `worktrees` lock: the process
 * that began the deletion is dead, and so are its commands.
 */
async function settleDeletion(repository: Repository): Promise<void> {
  const file = deletionFile(repository);
  const { branch, locks } = parseRecord(readIfThere(file)) ?? {};
  if (typeof branch === 'string') {
    const since = statSync(file).mtimeMs;
    for (const lock of locksOf(repository, branch)) {
      const madeAt = statSync(lock, { throwIfNoEntry: false })?.mtimeMs;
      const wasThere = Array.isArray(locks) && locks.includes(lock);
      if (madeAt !== undefined && madeAt >= since && !wasThere) await removeStaleLock(lock);
    }
  }
  removeIfThere(file);
}
