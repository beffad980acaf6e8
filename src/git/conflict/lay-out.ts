import { existsSync, lstatSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { RepriseError } from '../../core/errors.ts';
import type { Conflict } from '../commits.ts';
import {
  bytesOfFile,
  type ConflictedFile,
  describeConflicts,
  hasLabels,
  hasMarkers,
  type MarkerLabels,
} from '../conflict-files.ts';
import { type Git, gitFailed } from '../git.ts';
import { gitInside, restoreLink } from '../git-inside.ts';
import { removeIfThere } from '../lock-file.ts';
import type { Repository } from '../repository.ts';
import { printable } from '../words.ts';
import { refuseEmbedded } from '../workspace/commit.ts';
import { realPath } from '../workspace/entries.ts';
import { ownWorkspace } from '../workspace/reset.ts';

/** The workspace in which conflicts are solved. */
export interface Place {
  readonly path: string;
  readonly gitDir: string;
  readonly branch: string;
  readonly git: Git;
}

/** Throws WORKSPACE_FAILED if it is not the workspace of that branch. */
export function placeAt(repository: Repository, { path, branch }: { path: string; branch: string }): Place {
  const { gitDir, branch: own } = ownWorkspace(repository, path);
  if (own !== branch) {
    throw new RepriseError('WORKSPACE_FAILED', `${path} is the workspace of ${own}, not of ${branch}`);
  }
  restoreLink(repository, path);
  // Left by a git command that was killed; nobody else is here.
  removeIfThere(join(gitDir, 'index.lock'));
  const git = gitInside(repository, path);
  return { path: realPath(path), gitDir, branch, git };
}

/**
 * Puts a conflict into a workspace: HEAD, on no branch, and the index have what was replayed so far; what fits of the
 * commit is staged, and the conflicted files are not. Untracked and ignored files stay, unless the commit has them too.
 *
 * HEAD leaves the branch before any file changes: whoever commits what a crash left here does not do it on the branch.
 */
export async function layOut(
  { git, path }: Place,
  conflict: Conflict,
  labels: MarkerLabels,
): Promise<readonly ConflictedFile[]> {
  const { files, tree, at } = conflict;
  refuseUnspeakable(files);
  await git.ok(['update-ref', '--no-deref', '-m', 'reprise: solve', 'HEAD', at], { hooks: 'skip' });
  await bringTo(git, tree);
  const byName = ['--pathspec-from-file=-', '--pathspec-file-nul'];
  await git.ok(['--literal-pathspecs', 'reset', '--quiet', ...byName, at], {
    input: files.join('\0'),
    hooks: 'skip',
  });
  return describeConflicts(path, { ...conflict, labels });
}

/** Files and index become those of a tree; what git does not track stays, unless it is in the way. */
export const bringTo = (git: Git, tree: string): Promise<string> =>
  git.ok(['read-tree', '--reset', '-u', tree], { hooks: 'skip' });

/** A name that is not UTF-8 cannot be said to anybody, nor kept as data. */
function refuseUnspeakable(files: readonly string[]): void {
  const name = files.find(file => file.includes('\ufffd'));
  if (name === undefined) return;
  throw new RepriseError('WORKSPACE_FAILED', `the name of ${printable(name)} is not UTF-8`, {
    hint: 'solve this conflict by hand: git rebase',
  });
}

/** Which of the conflicted files still have markers. */
export async function unsolvedFiles(
  { git, path }: Place,
  { files, sides, labels }: UnsolvedRequest,
): Promise<readonly string[]> {
  const unsolved: string[] = [];
  for (const file of files) {
    const text = bytesOfFile(path, file);
    if (text === undefined || !hasMarkers(text)) continue;
    // It may be about markers: then only those that were laid out count.
    if (hasLabels(text, labels) || !(await hasOwnMarkers(git, file, sides))) unsolved.push(file);
  }
  return unsolved;
}

export interface UnsolvedRequest {
  readonly files: readonly string[];
  /** The commits that were merged. */
  readonly sides: readonly string[];
  readonly labels: MarkerLabels;
}

async function hasOwnMarkers(git: Git, file: string, sides: readonly string[]): Promise<boolean> {
  for (const side of sides) {
    const { code, stdout } = await git.run(['cat-file', 'blob', `${side}:${file}`], { encoding: 'bytes' });
    if (code === 0 && hasMarkers(stdout)) return true;
  }
  return false;
}

/** Stages all that is in the workspace now, and gives its tree. `at`, `tree`: what was laid out there. */
export async function stageSolution(
  { git, path }: Place,
  { at, tree }: { at: string; tree: string },
): Promise<string> {
  await refuseEmbedded(git);
  await git.ok(['add', '--all']);
  const changed = (await changedBetween(git, at, tree)).filter(isFileBelow(path));
  const ignored = await ignoredOf(git, changed);
  if (ignored.length > 0) {
    await git.ok(['update-index', '--add', '--replace', '-z', '--stdin'], { input: ignored.join('\0') });
  }
  return git.line(['write-tree']);
}

const changedBetween = async (git: Git, one: string, other: string): Promise<readonly string[]> =>
  (await git.ok(['diff-tree', '-r', '-z', '--name-only', '--no-renames', '--no-ext-diff', one, other]))
    .split('\0')
    .filter(name => name !== '');

/** Files of a commit are tracked even where git would ignore them, and must not be lost because they left the index. */
async function ignoredOf(git: Git, files: readonly string[]): Promise<readonly string[]> {
  if (files.length === 0) return [];
  const args = ['check-ignore', '--no-index', '-z', '--stdin'];
  // Names that begin with a colon mean something else.
  const result = await git.run(args, { input: files.map(file => `./${file}`).join('\0') });
  if (result.code > 1) throw gitFailed(args, result);
  return result.stdout
    .split('\0')
    .filter(name => name !== '')
    .map(name => name.slice('./'.length));
}

/** Behind a symbolic link is another folder. */
const isFileBelow =
  (folder: string) =>
  (path: string): boolean => {
    const file = join(folder, path);
    const isThere = lstatSync(file, { throwIfNoEntry: false })?.isDirectory() === false;
    return isThere && realPath(dirname(file)) === dirname(file);
  };

/** What somebody began on his own account, and would go on with whatever is committed next. HEAD and files stay. */
export async function leaveUnfinished({ git, gitDir }: Place): Promise<void> {
  const states: readonly (readonly [string, string])[] = [
    ['rebase-merge', 'rebase'],
    ['rebase-apply', 'rebase'],
    ['MERGE_HEAD', 'merge'],
    ['CHERRY_PICK_HEAD', 'cherry-pick'],
    ['REVERT_HEAD', 'revert'],
  ];
  for (const [file, command] of states) {
    if (existsSync(join(gitDir, file))) await git.run([command, '--quit'], { hooks: 'skip' });
  }
}
