import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import type { Owner } from '../../store/index.ts';
import { readIfThere } from '../files.ts';
import type { Git } from '../git.ts';
import { isCheckedOut } from '../landing/move-branch.ts';
import { type LockRequest, withRepositoryLock } from '../lock.ts';
import { branchTip, looseTip } from '../refs.ts';
import { type Repository, resolveCommit } from '../repository.ts';
import { type BranchRecord, forgetBranch, park, parkedBranch, readBranchRecord } from './branch-records.ts';
import { worktreeStatus } from './commit.ts';
import { discardUnfinished } from './create.ts';
import {
  gitInside,
  ownRepository,
  realPath,
  submodulesWithOwnCommits,
  unmarkReady,
  type WorktreeEntry,
  worktreeAt,
} from './entries.ts';

interface RemoveRequest {
  readonly repository: Repository;
  readonly owner: Owner;
  readonly path: string;
  /** Of the workspace, if it is known: whoever died while removing it may have left that alone. */
  readonly branch?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onWait?: LockRequest['onWait'];
}

export type Removal =
  | {
      readonly kind: 'removed';
      /** `undefined` if there was no workspace and no branch was named, and so nothing to do. */
      readonly branch: BranchFate | undefined;
      /** Commits that were on no branch at all are on this one now. */
      readonly parked: ParkedCommits | undefined;
    }
  /** Nothing was touched. `commitAll` puts the files on the branch; submodules with commits of their own are among them. */
  | { readonly kind: 'uncommitted-changes'; readonly files: readonly string[] };

export interface ParkedCommits {
  readonly branch: string;
  readonly commit: string;
  readonly commits: number;
}

/**
 * Removes a workspace and, if all its commits are elsewhere, its branch. Commits that are nowhere else stay on a branch,
 * which the result names. Refuses while there are uncommitted changes. Throws WORKSPACE_FAILED if Reprise did not make
 * what is at the path.
 */
export function removeWorkspace(request: RemoveRequest): Promise<Removal> {
  return withRepositoryLock({ ...request, name: 'worktrees' }, ({ repository }) =>
    remove(standsOutside(repository, request.path), request),
  );
}

/** No command can run in a folder that is gone. */
function standsOutside(repository: Repository, path: string): Repository {
  const { root, commonDir, git } = repository;
  const isInside = root !== undefined && `${root}/`.startsWith(`${realPath(path)}/`);
  return isInside ? { ...repository, git: git.with({ cwd: commonDir }) } : repository;
}

async function remove(
  repository: Repository,
  { path, branch }: Pick<RemoveRequest, 'path' | 'branch'>,
): Promise<Removal> {
  const entry = worktreeAt(repository, path);
  if (entry?.label === undefined) {
    if (entry === undefined && !existsSync(path)) {
      const fate = branch === undefined ? undefined : await tidyBranch(repository, branch);
      return { kind: 'removed', branch: fate, parked: undefined };
    }
    throw new RepriseError('WORKSPACE_FAILED', `${path} is not a workspace that Reprise made`);
  }
  return entry.ready && !entry.missing ? removeFinished(repository, entry) : removeEmpty(repository, entry);
}

async function removeFinished(repository: Repository, entry: WorktreeEntry): Promise<Removal> {
  const branch = entry.label?.branch;
  const [status, tidy] = await Promise.all([
    worktreeStatus(gitInside(repository, entry.path)),
    branch === undefined ? undefined : prepareToTidy(repository, branch, entry.gitDir),
  ]);
  const files = [
    ...status.uncommitted,
    ...(await submodulesWithOwnCommits(repository.git, entry.gitDir)),
    ...ownRepository(entry.path),
  ];
  if (files.length > 0) return { kind: 'uncommitted-changes', files };
  const parked = await parkHead(repository, entry, status.detachedAt);
  unmarkReady(entry.gitDir);
  const [fate] = await Promise.all([tidy?.(), discardFinished(repository, entry)]);
  return { kind: 'removed', branch: fate, parked };
}

/** Git deletes many files with less effort than Node does. What it could not delete is tried again. */
async function discardFinished({ git }: Repository, entry: WorktreeEntry): Promise<void> {
  await git.run(['worktree', 'remove', '--force', '--force', '--', entry.path], { hooks: 'skip' });
  if (existsSync(entry.path) || existsSync(entry.gitDir)) await discardUnfinished({ ...entry, ready: false });
}

/** Nobody has worked in it, or its folder is gone; then its git folder still knows where HEAD was. */
async function removeEmpty(repository: Repository, entry: WorktreeEntry): Promise<Removal> {
  const own = repository.git.with({ env: { GIT_DIR: entry.gitDir } });
  const { code } = await own.run(['symbolic-ref', '--quiet', 'HEAD']);
  const detachedAt = code === 0 ? undefined : await resolveCommit(own, 'HEAD');
  const parked = await parkHead(repository, entry, detachedAt);
  await discardUnfinished(entry);
  const branch = entry.label?.branch;
  return {
    kind: 'removed',
    branch: branch === undefined ? undefined : await tidyBranch(repository, branch),
    parked,
  };
}

/** An agent may have left the branch and committed on a HEAD that nothing else points to. */
async function parkHead(
  { git }: Repository,
  { path, label }: WorktreeEntry,
  commit: string | undefined,
): Promise<ParkedCommits | undefined> {
  const commits = commit === undefined ? 0 : await commitsNowhereElse(git, commit);
  if (commit === undefined || commits === 0) return undefined;
  const branch = parkedBranch(label?.branch ?? path, commit);
  await park(git, `refs/heads/${branch}`, commit);
  return { branch, commit, commits };
}

/** How many commits of a tip no other branch, tag or remote branch has. `besides`: a branch that does not count. */
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

/** Like `commitsNowhereElse` for a branch of Reprise, but what was landed, and so became other commits, does not count. */
export async function unlandedCommits(git: Git, tip: string, record: BranchRecord): Promise<number> {
  const count = await commitsNowhereElse(git, tip, record.branch);
  if (count === 0 || record.landed?.tip !== tip) return count;
  return (await commitsNowhereElse(git, record.landed.commit, record.branch)) === 0 ? 0 : count;
}

/** What became of a branch. */
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

export type KeptBecause = 'not made by Reprise' | 'unlanded commits' | 'checked out' | 'it moved';

/** How a branch stands, before anything is done about it. */
interface BranchStatus {
  readonly tip: string | undefined;
  readonly commits: number;
}

async function lookAt(repository: Repository, branch: string): Promise<BranchStatus> {
  const { git } = repository;
  const tip = await branchTip(repository, branch);
  if (tip === undefined) return { tip, commits: 0 };
  if (isTipOfMain(repository, { tip, branch })) return { tip, commits: 0 };
  const record = readBranchRecord(repository, branch);
  const commits = await (record ? unlandedCommits(git, tip, record) : commitsNowhereElse(git, tip, branch));
  return { tip, commits };
}

/**
 * Whether the first checkout is on another branch with the same tip: so it is with most workspaces in which nothing was
 * committed, and asking files spares a process. `false` may also mean that files do not tell.
 */
function isTipOfMain(repository: Repository, { tip, branch }: { tip: string; branch: string }): boolean {
  const head = readIfThere(join(repository.commonDir, 'HEAD'))?.trim() ?? '';
  const current = /^ref: refs\/heads\/(.+)$/.exec(head)?.[1];
  return current !== undefined && current !== branch && looseTip(repository.commonDir, current) === tip;
}

/**
 * Deletes a branch that Reprise made, if all its commits are elsewhere. To be called with the lock `worktrees`: two
 * branches with the same commits, each deleted because of the other, would lose them.
 */
export const tidyBranch = async (repository: Repository, branch: string): Promise<BranchFate> =>
  (await prepareToTidy(repository, branch))();

/**
 * The same in two parts, so that the first can be done while something else is looked at. `leaving` is the git folder of
 * a worktree that is being removed, and so does not need the branch any more.
 */
async function prepareToTidy(
  repository: Repository,
  branch: string,
  leaving?: string,
): Promise<() => Promise<BranchFate>> {
  const { tip, commits } = await lookAt(repository, branch);
  return async () => {
    if (tip === undefined) {
      forgetBranch(repository, branch);
      return { kind: 'gone', branch };
    }
    const kept = (why: KeptBecause): BranchFate => ({ kind: 'kept', branch, tip, commits, why });
    if (readBranchRecord(repository, branch) === undefined) return kept('not made by Reprise');
    if (commits > 0) return kept('unlanded commits');
    if (await isCheckedOut(repository, branch, leaving)) return kept('checked out');
    const args = ['update-ref', '--no-deref', '-d', `refs/heads/${branch}`, tip];
    // Refused if the branch is not where it was: it has commits then that nobody has looked at.
    if ((await repository.git.run(args, { hooks: 'skip' })).code !== 0) return kept('it moved');
    forgetBranch(repository, branch);
    return { kind: 'deleted', branch, tip };
  };
}
