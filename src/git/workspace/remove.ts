import { existsSync } from 'node:fs';
import { RepriseError } from '../../core/errors.ts';
import type { Owner } from '../../store/port.ts';
import { gitInside, ownRepository } from '../git-inside.ts';
import { type LockRequest, withRepositoryLock } from '../lock.ts';
import { park, parkedBranch } from '../parking.ts';
import { type Repository, resolveCommit } from '../repository.ts';
import { worktreeStatus } from '../status.ts';
import { submodulesWithOwnCommits } from '../submodules.ts';
import { type BranchFate, commitsNowhereElse, prepareToTidy, tidyBranch } from '../unlanded.ts';
import { discardUnfinished } from './create.ts';
import { realPath, unmarkReady, type WorktreeEntry, worktreeAt } from './entries.ts';

export interface RemoveRequest {
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
    remove(standingOutside(repository, request.path), request),
  );
}

/** No command can run in a folder that is gone. */
function standingOutside(repository: Repository, path: string): Repository {
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
