import { closeSync, openSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { stageQuickly } from './fast/stage.ts';
import { hasCode } from './files.ts';
import { type Git, gitFailed } from './git.ts';
import { removeIfThere } from './lock-file.ts';
import type { GitFolders } from './refs.ts';
import { copyIndex } from './side-index.ts';
import { type WorktreeStatus, worktreeStatus } from './status.ts';

export interface StageRequest {
  /** In the worktree. */
  readonly git: Git;
  /** Of the worktree, if they are known. */
  readonly folders: GitFolders | undefined;
  /** Whether all is to be staged, now that it is known how the worktree stands. What it throws is thrown. */
  readonly isWanted: (status: WorktreeStatus) => boolean;
  readonly signal?: AbortSignal | undefined;
}

/** What is checked out, and whether all of the worktree is staged now. */
export type Staging = Pick<WorktreeStatus, 'head' | 'branch'> & { readonly isStaged: boolean };

const addAll = ['add', '--all'];

/** Stages everything that was left uncommitted, if that is wanted; else nothing is changed. Throws GIT_FAILED. */
export async function stageAll(request: StageRequest): Promise<Staging> {
  const { git, folders, isWanted, signal } = request;
  if (folders !== undefined) return stageBeside({ ...request, folders });
  const status = await worktreeStatus(git);
  const isStaged = isWanted(status);
  if (isStaged) await git.ok(addAll, { signal });
  return { ...status, isStaged };
}

type Beside = StageRequest & { readonly folders: GitFolders };

/** What is added goes to an index beside, which takes the place of the real one once it is wanted. */
async function stageBeside(request: Beside): Promise<Staging> {
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
  { git, isWanted, signal }: Beside,
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
