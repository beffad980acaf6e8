import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import type { Owner } from '../../store/index.ts';
import { withScratchIndex } from '../fast/stage.ts';
import type { Git } from '../git.ts';
import { type LockRequest, withRepositoryLock } from '../lock.ts';
import { removeIfThere } from '../lock-file.ts';
import { type Repository, resolveCommit } from '../repository.ts';
import { type ParkedRef, park, parkedRef } from './branch-records.ts';
import { refuseEmbedded, worktreeStatus } from './commit.ts';
import { gitInside, restoreLink, submodulesWithOwnCommits, worktreeAt } from './entries.ts';
import { commitsNowhereElse } from './remove.ts';

export interface ResetRequest {
  readonly repository: Repository;
  readonly owner: Owner;
  /** Of a workspace that nobody works in. */
  readonly path: string;
  /** What it is brought back to. */
  readonly commit: string;
  readonly signal?: AbortSignal | undefined;
  readonly onWait?: LockRequest['onWait'];
}

export interface ResetDone {
  /** What would have been lost: commits of the branch, of a HEAD on no branch, and what was not committed. */
  readonly parked: readonly ParkedRef[];
}

/**
 * Brings a workspace back to a commit, on its branch and without what was not committed; ignored files stay. Everything
 * that is nowhere else is parked first. Throws WORKSPACE_FAILED, having changed nothing, if Reprise did not make it, or
 * if another repository is inside.
 */
export function resetWorkspace(request: ResetRequest): Promise<ResetDone> {
  return withRepositoryLock({ ...request, name: 'worktrees' }, ({ repository }) =>
    reset({ ...request, repository }),
  );
}

async function reset({ repository, path, commit, signal }: ResetRequest): Promise<ResetDone> {
  const { gitDir, branch } = ownWorkspace(repository, path);
  restoreLink(repository, path);
  const git = gitInside(repository, path);
  const target = await resolveCommit(git, commit);
  if (target === undefined) throw failed(`${JSON.stringify(commit)} is no commit to bring ${path} back to`);
  // Left by a git command that was killed; nobody else is here.
  removeIfThere(join(gitDir, 'index.lock'));
  await refuseEmbedded(git);
  await refuseOwnSubmodules(git, { path, gitDir });
  const parked = await parkAll(git, { branch, target });
  if (['rebase-merge', 'rebase-apply'].some(state => existsSync(join(gitDir, state)))) {
    await git.run(['rebase', '--quit'], { hooks: 'skip' });
  }
  await git.ok(['checkout', '--quiet', '--force', '--no-track', '-B', branch, target], {
    hooks: 'skip',
    signal,
  });
  await git.ok(['clean', '--quiet', '-d', '--force'], { hooks: 'skip', signal });
  return { parked };
}

/** Throws WORKSPACE_FAILED unless Reprise made it, and to its end. */
export function ownWorkspace(repository: Repository, path: string): { gitDir: string; branch: string } {
  const entry = worktreeAt(repository, path);
  const branch = entry?.label?.branch;
  if (entry === undefined || branch === undefined || !entry.ready || entry.missing) {
    throw failed(`${path} is not a workspace that Reprise made`, 'make it first');
  }
  return { gitDir: entry.gitDir, branch };
}

async function refuseOwnSubmodules(git: Git, { path, gitDir }: { path: string; gitDir: string }) {
  const names = await submodulesWithOwnCommits(git, gitDir);
  if (names.length === 0) return;
  throw failed(
    `submodules in ${path} have commits that were not pushed: ${names.join(', ')}`,
    'push them, or remove the workspace by hand if nothing in them is needed',
  );
}

/** Parks what would be lost if the workspace were at the target. To be called with the lock `worktrees`. */
export async function parkAll(
  git: Git,
  { branch, target }: { branch: string; target: string },
): Promise<readonly ParkedRef[]> {
  const status = await worktreeStatus(git);
  const head = await resolveCommit(git, 'HEAD');
  const tip = await resolveCommit(git, `refs/heads/${branch}`);
  const leftOver =
    status.uncommitted.length > 0 && head !== undefined ? await snapshot(git, head) : undefined;
  const parked: ParkedRef[] = [];
  // A snapshot is on top of HEAD and keeps it too; only a branch that HEAD has left needs a ref of its own.
  for (const commit of [leftOver ?? head, tip === head ? undefined : tip]) {
    if (commit === undefined) continue;
    const commits = await commitsLostBy(git, { commit, branch, target });
    if (commits === 0) continue;
    const ref = parkedRef(branch, commit);
    await park(git, ref, commit);
    parked.push({ ref, commit, commits });
  }
  return parked;
}

/** The branch is about to be at the target: what that has is kept. */
async function commitsLostBy(
  git: Git,
  { commit, branch, target }: { commit: string; branch: string; target: string },
): Promise<number> {
  const isKept = await git.run(['merge-base', '--is-ancestor', commit, target]);
  return isKept.code === 0 ? 0 : commitsNowhereElse(git, commit, branch);
}

/**
 * All that is not committed as a commit on top of HEAD, which neither HEAD nor the index notice. It has the date of HEAD:
 * the same work always gives the same commit.
 */
const snapshot = (git: Git, head: string): Promise<string> =>
  withScratchIndex(git, async side => {
    await side.ok(['add', '--all']);
    const tree = await side.line(['write-tree']);
    const date = await side.line(['show', '--no-patch', '--format=@%ct +0000', head]);
    const identity = {
      GIT_AUTHOR_NAME: 'reprise',
      GIT_AUTHOR_EMAIL: 'reprise@localhost',
      GIT_AUTHOR_DATE: date,
      GIT_COMMITTER_NAME: 'reprise',
      GIT_COMMITTER_EMAIL: 'reprise@localhost',
      GIT_COMMITTER_DATE: date,
    };
    return side
      .with({ env: identity })
      .line(['commit-tree', '-p', head, '-m', 'Uncommitted work of an attempt that was given up', tree]);
  });

const failed = (message: string, hint?: string): RepriseError =>
  new RepriseError('WORKSPACE_FAILED', message, hint === undefined ? {} : { hint });
