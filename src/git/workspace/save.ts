import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type EventOf, RepriseError, type Timestamp } from '../../core/index.ts';
import { changeCounts, changesSince } from '../diff.ts';
import { makeDurable, makeRecentDurable, removeIfThere, syncPaths } from '../files.ts';
import type { Git } from '../git.ts';
import { committer } from '../names.ts';
import { branchTargets, branchTip } from '../refs.ts';
import type { Repository } from '../repository.ts';
import { readBranchRecord, writeBranchRecord } from './branch-records.ts';
import { type CommitResult, commitAll, otherRepository, worktreeStatus } from './commit.ts';
import { gitDirOf, gitInside } from './entries.ts';

/** A workspace that exists. */
export interface WorkFolder {
  /** Absolute path. */
  readonly path: string;
  readonly branch: string;
  /** Commit that it started from. */
  readonly base: string;
}

export interface SaveRequest extends WorkFolder {
  readonly message: string;
  readonly at: Timestamp;
}

/** Commits all uncommitted changes and returns what the workspace contains. Throws WORKSPACE_FAILED or GIT_FAILED. */
export async function saveWork(
  repository: Repository,
  { path, branch, base, message, at }: SaveRequest,
): Promise<EventOf<'workspace.saved'>['data']> {
  if (!existsSync(path)) throw workspaceMissing(path);
  const gitDir = await gitDirOf(repository, path);
  if (gitDir === undefined) throw otherRepository(path, ['.git']);
  // A git command that was killed may have left it; no process works here any more.
  removeIfThere(join(gitDir, 'index.lock'));
  const git = gitInside(repository, path);
  const committed = await commitAll({
    ...repository,
    git,
    own: branch,
    since: base,
    message,
    author: committer,
    at,
  });
  const { commit } = committed;
  if (committed.branch !== branch) await bringBranchAlong(git, branch);
  if (commit === base) return { commit, commits: 0, files: 0, insertions: 0, deletions: 0 };
  const [commits, changes] = await Promise.all([
    countCommits(git, base, committed),
    (committed.kind === 'committed' && committed.changes) || changeCounts(git, base),
    isOnTopOf(base, committed)
      ? Promise.all([makeRecentDurable(repository, `refs/heads/${branch}`), syncPaths([gitDir])])
      : makeDurable(repository, { from: base, to: commit, branch, gitDir }),
  ]);
  return { commit, commits, ...changes };
}

/** Work that history says is saved. */
export interface SavedWork extends Pick<WorkFolder, 'branch' | 'base'> {
  readonly commit: string;
}

/**
 * Returns the branches whose saved commit no longer exists. A branch that was deleted although its commit exists is
 * restored.
 */
export async function lostBranches(
  repository: Repository,
  works: readonly SavedWork[],
): Promise<readonly string[]> {
  const { git } = repository;
  const input = works.map(({ commit }) => `${commit}^{tree}\n`).join('');
  const found = (await git.ok(['cat-file', '--batch-check'], { input })).split('\n');
  const isThere = works.map((_, at) => / tree \d+$/.test(found[at] ?? ''));
  const tips = await branchTargets(
    repository,
    works.map(({ branch }) => branch),
  );
  for (const [at, { branch, base, commit }] of works.entries()) {
    if (!isThere[at] || tips.has(branch)) continue;
    await git.ok(['update-ref', `refs/heads/${branch}`, commit, ''], { hooks: 'skip' });
    if (!readBranchRecord(repository, branch)) writeBranchRecord(repository, { branch, base });
  }
  return works.flatMap(({ branch }, at) => (isThere[at] ? [] : branch));
}

/** Returns when the work in a workspace survives a power loss, whether it is committed or not. Does nothing elsewhere. */
export async function syncWork(repository: Repository, path: string): Promise<void> {
  const gitDir = await gitDirOf(repository, path);
  if (gitDir === undefined) return;
  // A broken index is reported when the work is saved.
  const status = await worktreeStatus(gitInside(repository, path)).catch(() => undefined);
  const files = status?.uncommitted.map(name => join(path, name)) ?? [];
  await syncPaths([...files, ...files.map(dirname)]);
  await makeRecentDurable(
    repository,
    status?.branch === undefined ? undefined : `refs/heads/${status.branch}`,
  );
  await syncPaths([...['HEAD', 'index'].map(name => join(gitDir, name)), gitDir]);
}

/** Whether the work is a single commit, which Reprise made a moment ago. Less has to be asked about it. */
const isOnTopOf = (base: string, committed: CommitResult): boolean =>
  committed.kind === 'committed' && committed.parent === base;

const countCommits = async (git: Git, base: string, committed: CommitResult): Promise<number> =>
  isOnTopOf(base, committed) ? 1 : Number(await git.line(['rev-list', '--count', `${base}..HEAD`]));

const workspaceMissing = (path: string): RepriseError =>
  new RepriseError('WORKSPACE_FAILED', `the workspace ${path} was removed while the step was running`, {
    hint: 'what was committed in it is on its branch; find out what removed the folder, then resume the run',
  });

/**
 * Moves the branch of the workspace to HEAD, for an agent that has switched to another branch or detached HEAD. Throws
 * WORKSPACE_FAILED if the branch would lose commits.
 */
async function bringBranchAlong(git: Git, branch: string): Promise<void> {
  const ref = `refs/heads/${branch}`;
  const tip = await branchTip({ git }, branch);
  const isBehind =
    tip === undefined || (await git.run(['merge-base', '--is-ancestor', tip, 'HEAD'])).code === 0;
  if (!isBehind) {
    throw new RepriseError(
      'WORKSPACE_FAILED',
      `the work in ${git.cwd} is not on ${branch}, which has other commits`,
      {
        hint: `bring both together: cd ${JSON.stringify(git.cwd)} && git switch ${branch}, and merge what is missing`,
      },
    );
  }
  await git.ok(['update-ref', ref, 'HEAD', ...(tip === undefined ? [] : [tip])], { hooks: 'skip' });
  await git.ok(['symbolic-ref', 'HEAD', ref]);
}

/** Lists the paths that differ from the base, committed or not, except those in `ignoring`. */
export async function changesIn(
  repository: Repository,
  { path, base, ignoring }: WorkFolder & { readonly ignoring: readonly string[] },
): Promise<readonly string[]> {
  if (!existsSync(path)) throw workspaceMissing(path);
  if ((await gitDirOf(repository, path)) === undefined) throw otherRepository(path, ['.git']);
  const git = gitInside(repository, path);
  const { uncommitted, head } = await worktreeStatus(git);
  const committed = head === base ? [] : await committedFiles(git, base);
  const ignored = new Set(ignoring);
  return [...new Set([...committed, ...uncommitted])].filter(file => !ignored.has(file));
}

const committedFiles = async (git: Git, base: string): Promise<readonly string[]> => {
  const { files } = await changesSince(git, { base, patchLimit: 0 });
  return files.length > 0 ? files.map(({ path }) => path) : ['a commit without changes'];
};

/** Mark in the private git folder of a workspace, which is deleted together with the workspace. */
const setupMark = (gitDir: string): string => join(gitDir, 'reprise-setup');

/** Whether the setup of a workspace has completed. */
export const isSetUp = (gitDir: string): boolean => existsSync(setupMark(gitDir));

/** Records whether the setup of a workspace has completed. */
export async function markSetUp(
  repository: Repository,
  { path, done }: { readonly path: string; readonly done: boolean },
): Promise<void> {
  const gitDir = await gitDirOf(repository, path);
  if (gitDir === undefined) return;
  if (done) writeFileSync(setupMark(gitDir), '');
  else removeIfThere(setupMark(gitDir));
}
