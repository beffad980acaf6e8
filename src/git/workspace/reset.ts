import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import type { Owner } from '../../store/index.ts';
import { removeIfThere } from '../files.ts';
import type { Git } from '../git.ts';
import { type LockPatience, withRepositoryLock } from '../lock.ts';
import { branchTip, resolveCommit } from '../refs.ts';
import type { Repository } from '../repository.ts';
import { withScratchIndex } from '../scratch-index.ts';
import { type ParkedRef, park, parkedRef } from './branch-records.ts';
import { refuseEmbedded, worktreeStatus } from './commit.ts';
import { gitInside, submodulesWithOwnCommits, worktreeConditionAt } from './entries.ts';
import { commitsNowhereElse } from './remove.ts';

export interface ResetRequest extends LockPatience {
  readonly repository: Repository;
  readonly owner: Owner;
  /** Path of a workspace in which no process works. */
  readonly path: string;
  /** Commit that the workspace is reset to. */
  readonly commit: string;
  readonly signal?: AbortSignal | undefined;
}

export interface ResetDone {
  /** Refs for what would have been lost: commits of the branch and of a detached HEAD, and uncommitted changes. */
  readonly parked: readonly ParkedRef[];
}

/**
 * Resets a workspace to a commit, on its branch and without uncommitted changes; ignored files stay. Everything that exists
 * nowhere else is parked first. Throws WORKSPACE_FAILED, with nothing changed, if Reprise did not make the workspace, or if
 * it contains another repository.
 */
export function resetWorkspace(request: ResetRequest): Promise<ResetDone> {
  return withRepositoryLock({ ...request, name: 'worktrees' }, ({ repository }) =>
    reset({ ...request, repository }),
  );
}

async function reset({ repository, path, commit, signal }: ResetRequest): Promise<ResetDone> {
  const { gitDir, branch } = await ownWorkspace(repository, path);
  const git = gitInside(repository, path);
  const target = await resolveCommit(git, commit);
  if (target === undefined) throw failed(`${JSON.stringify(commit)} is not a commit to reset ${path} to`);
  // A git command that was killed may have left it; no process works here.
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

/** Returns git folder and branch of a finished workspace. Throws WORKSPACE_FAILED unless Reprise made it. */
export async function ownWorkspace(
  repository: Repository,
  path: string,
): Promise<{ readonly gitDir: string; readonly branch: string }> {
  const state = await worktreeConditionAt(repository, path);
  const branch = state.kind === 'finished' ? state.label.branch : undefined;
  if (state.kind !== 'finished' || branch === undefined) {
    throw failed(`${path} is not a workspace that Reprise made`, 'make it first');
  }
  return { gitDir: state.gitDir, branch };
}

async function refuseOwnSubmodules(git: Git, { path, gitDir }: { path: string; gitDir: string }) {
  const names = await submodulesWithOwnCommits(git, gitDir);
  if (names.length === 0) return;
  throw failed(
    `submodules in ${path} have commits that were not pushed: ${names.join(', ')}`,
    'push them, or remove the workspace by hand if nothing in them is needed',
  );
}

/** Parks the work that a reset to the target would lose. Requires the `worktrees` lock. */
export async function parkAll(
  git: Git,
  { branch, target }: { branch: string; target: string },
): Promise<readonly ParkedRef[]> {
  const status = await worktreeStatus(git);
  const { head } = status;
  const tip = status.branch === branch ? head : await branchTip({ git }, branch);
  const leftOver =
    status.uncommitted.length > 0 && head !== undefined ? await snapshot(git, head) : undefined;
  const parked: ParkedRef[] = [];
  // A snapshot is a child of HEAD and keeps it too. Only a branch that HEAD has left needs a separate ref.
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

/** Counts the commits that are lost when the branch moves to the target. */
async function commitsLostBy(
  git: Git,
  { commit, branch, target }: { commit: string; branch: string; target: string },
): Promise<number> {
  const isKept = await git.run(['merge-base', '--is-ancestor', commit, target]);
  return isKept.code === 0 ? 0 : commitsNowhereElse(git, commit, branch);
}

/**
 * Stores uncommitted changes as a commit on top of HEAD, without changing HEAD or the index. The commit has the date of
 * HEAD, so that the same work always gives the same commit.
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
