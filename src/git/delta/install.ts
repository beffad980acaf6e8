import { constants, copyFileSync, lstatSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { RepriseError } from '../../core/errors.ts';
import { hasCode } from '../files.ts';
import { type Git, lastLines } from '../git.ts';
import { setAge } from '../side-index.ts';
import { setEmptyFolders } from './empty-folders.ts';
import type { Shadow } from './shadow.ts';
import { setStashes } from './stashes.ts';
import { branchRef, type Head, isSameIndex, isSameStashes, type WorktreeState } from './state.ts';

export interface Change {
  /** As `snapshot` found it with the same shadow. */
  readonly current: WorktreeState;
  readonly wanted: WorktreeState;
}

/**
 * Makes the worktree stand as wanted. All objects that this names must be there. If a file is in the way, nothing is
 * changed and the answer is what git says about it.
 */
export async function install(shadow: Shadow, { current, wanted }: Change): Promise<string | undefined> {
  const { place, git } = shadow;
  if (current.tree !== wanted.tree) {
    const { code, stderr } = await git.run(['read-tree', '-m', '-u', current.tree, wanted.tree]);
    if (code !== 0) return lastLines(stderr);
  }
  await Promise.all([
    isSameIndex(current.index, wanted.index) ? undefined : installIndex(shadow, wanted),
    moveRefs(place.git, { current, wanted }),
  ]);
  // After refs, because what is stashed is known by a ref too, and git locks them one by one.
  if (!isSameStashes(current.stashes, wanted.stashes))
    await setStashes(place.git, { current: current.stashes, wanted: wanted.stashes });
  setEmptyFolders(place.folder, { current: current.emptyFolders, wanted: wanted.emptyFolders });
  return undefined;
}

/** The index of the shadow knows the files on disk: with it, git does not have to read them all again. */
async function installIndex(
  { git, index, place }: Shadow,
  { tree, index: wanted }: WorktreeState,
): Promise<void> {
  if (wanted.tree !== tree) await git.ok(['read-tree', '-m', wanted.tree]);
  const announced = wanted.intentToAdd.filter(path => isThere(join(place.folder, path)));
  if (announced.length > 0) {
    const args = ['add', '--intent-to-add', '--force', '--pathspec-from-file=-', '--pathspec-file-nul'];
    await git.with({ env: { GIT_LITERAL_PATHSPECS: '1' } }).ok(args, { input: announced.join('\0') });
  }
  replaceIndex(index, join(place.gitDir, 'index'));
}

function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

/** Takes the lock that git takes, so that no command reads or writes half of it. */
function replaceIndex(from: string, real: string): void {
  const lock = `${real}.lock`;
  try {
    copyFileSync(from, lock, constants.COPYFILE_EXCL);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
    throw new RepriseError(
      'WORKSPACE_FAILED',
      `git is at work in the worktree, or was killed there: ${lock} exists`,
    );
  }
  // Not younger than the files: what is written to one of them in this second must not be missed.
  setAge(lock, Math.min(statSync(from).mtimeMs, Date.now()));
  renameSync(lock, real);
}

/** One transaction for all refs, and one more command if another branch is checked out. */
async function moveRefs(git: Git, { current, wanted }: Change): Promise<void> {
  const { branch } = wanted.head;
  const isOtherBranch = branch !== null && branch !== current.head.branch;
  const lines = [...otherRefs(wanted), ...headLines(current.head, wanted.head)];
  const message = ['-m', 'reprise: what a session did'];
  if (isOtherBranch) await git.ok(['symbolic-ref', ...message, 'HEAD', branchRef(branch)]);
  if (lines.length > 0) await git.ok(['update-ref', ...message, '-z', '--stdin'], { input: lines.join('') });
}

const otherRefs = ({ refs }: WorktreeState): readonly string[] =>
  Object.entries(refs).map(([name, value]) =>
    value === null ? `delete ${name}\0\0` : `update ${name}\0${value}\0\0`,
  );

function headLines(current: Head, { commit, branch }: Head): readonly string[] {
  if (commit === null || (commit === current.commit && branch === current.branch)) return [];
  if (branch === null) return [`option no-deref\0update HEAD\0${commit}\0\0`];
  return [`update ${branchRef(branch)}\0${commit}\0\0`];
}
