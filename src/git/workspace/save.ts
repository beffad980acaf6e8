import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type EventOf, RepriseError, type Timestamp } from '../../core/index.ts';
import { changeCounts, changesSince } from '../diff.ts';
import type { Git } from '../git.ts';
import { removeIfThere } from '../lock-file.ts';
import { committer } from '../names.ts';
import { type Repository, resolveCommit } from '../repository.ts';
import { type CommitResult, commitAll, worktreeStatus } from './commit.ts';
import { gitInside, privateGitDir, restoreLink, worktreeAt } from './entries.ts';

/** A workspace that is there. */
export interface WorkFolder {
  /** Absolute. */
  readonly path: string;
  readonly branch: string;
  /** The commit that it began with. */
  readonly base: string;
}

export interface SaveRequest extends WorkFolder {
  readonly message: string;
  readonly at: Timestamp;
}

/** Commits all that was left uncommitted, and says what the workspace holds now. Throws WORKSPACE_FAILED, GIT_FAILED. */
export async function saveWork(
  repository: Repository,
  { path, branch, base, message, at }: SaveRequest,
): Promise<EventOf<'workspace.saved'>['data']> {
  if (!existsSync(path)) throw workspaceMissing(path);
  restoreLink(repository, path);
  const git = gitInside(repository, path);
  // Left by a git command that was killed: all that worked here has ended.
  const gitDir = privateGitDir(path);
  if (gitDir !== undefined) removeIfThere(join(gitDir, 'index.lock'));
  const entry = worktreeAt(repository, path);
  const folders = entry && { gitDir: entry.gitDir, commonDir: repository.commonDir };
  const committed = await commitAll({ git, folders, since: base, message, author: committer, at });
  const { commit } = committed;
  if (committed.branch !== branch) await bringBranchAlong(git, branch);
  if (commit === base) return { commit, commits: 0, files: 0, insertions: 0, deletions: 0 };
  const [commits, changes] = await Promise.all([
    countCommits(git, base, committed),
    (committed.kind === 'committed' && committed.changes) || changeCounts(git, base),
  ]);
  return { commit, commits, ...changes };
}

/** Git need not be asked when all that is there is one commit on top of the base. */
const countCommits = async (git: Git, base: string, committed: CommitResult): Promise<number> =>
  committed.kind === 'committed' && committed.parent === base
    ? 1
    : Number(await git.line(['rev-list', '--count', `${base}..HEAD`]));

const workspaceMissing = (path: string): RepriseError =>
  new RepriseError('WORKSPACE_FAILED', `the workspace ${path} was removed while the step was at work`, {
    hint: 'what was committed in it is on its branch; find out what removed the folder, then resume the run',
  });

/**
 * An agent may have gone to another branch, or to none. Its work is looked for on the branch of the workspace, which
 * can follow as long as nothing of its own is lost by it.
 */
async function bringBranchAlong(git: Git, branch: string): Promise<void> {
  const ref = `refs/heads/${branch}`;
  const tip = await resolveCommit(git, ref);
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

/** What differs from the base, in commits or files; `ignoring` does not count. */
export async function changesIn(
  repository: Repository,
  { path, base, ignoring }: WorkFolder & { readonly ignoring: readonly string[] },
): Promise<readonly string[]> {
  if (!existsSync(path)) throw workspaceMissing(path);
  const git = gitInside(repository, path);
  const { uncommitted } = await worktreeStatus(git);
  const committed = (await git.line(['rev-parse', 'HEAD'])) === base ? [] : await committedFiles(git, base);
  const ignored = new Set(ignoring);
  return [...new Set([...committed, ...uncommitted])].filter(file => !ignored.has(file));
}

const committedFiles = async (git: Git, base: string): Promise<readonly string[]> => {
  const { files } = await changesSince(git, { base, patchLimit: 0 });
  return files.length > 0 ? files.map(({ path }) => path) : ['a commit without changes'];
};

/** In the private git folder of the workspace, so that it is gone when the workspace is. */
const setupMark = (path: string): string | undefined => {
  const gitDir = privateGitDir(path);
  return gitDir === undefined ? undefined : join(gitDir, 'reprise-setup');
};

/** Whether the setup has been run in it to its end. */
export const isSetUp = (path: string): boolean => existsSync(setupMark(path) ?? '');

export function markSetUp(path: string, done: boolean): void {
  const mark = setupMark(path);
  if (mark === undefined) return;
  if (done) writeFileSync(mark, '');
  else removeIfThere(mark);
}
