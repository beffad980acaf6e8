import { existsSync, lstatSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import type { Conflict, ConflictedMerge, ConflictStage } from '../commits.ts';
import { removeIfThere } from '../files.ts';
import { type Git, gitFailed } from '../git.ts';
import { printable } from '../names.ts';
import type { Repository } from '../repository.ts';
import { refuseEmbedded } from '../workspace/commit.ts';
import { gitInside, realPath } from '../workspace/entries.ts';
import { ownWorkspace } from '../workspace/reset.ts';

/** Workspace in which conflicts are resolved. */
export interface ConflictWorkspace {
  readonly path: string;
  readonly gitDir: string;
  readonly branch: string;
  readonly git: Git;
}

/** Opens the workspace. Throws WORKSPACE_FAILED if the path is not the workspace of that branch. */
export async function conflictWorkspaceAt(
  repository: Repository,
  { path, branch }: { path: string; branch: string },
): Promise<ConflictWorkspace> {
  const { gitDir, branch: own } = await ownWorkspace(repository, path);
  if (own !== branch) {
    throw new RepriseError('WORKSPACE_FAILED', `${path} is the workspace of ${own}, not of ${branch}`);
  }
  // A killed git command may have left this lock. No other process works in this workspace.
  removeIfThere(join(gitDir, 'index.lock'));
  const git = gitInside(repository, path);
  return { path: realPath(path), gitDir, branch, git };
}

/**
 * Lays out a conflict in a workspace. HEAD is detached at the commits that were replayed so far. Changes of the next
 * commit that merge cleanly are staged, the conflicted files are not. Untracked and ignored files stay, unless the commit
 * contains them.
 *
 * HEAD is detached before any file changes, so that a commit made after a crash here does not end up on the branch.
 */
export async function layOut(
  { git, path }: ConflictWorkspace,
  conflict: Conflict,
  labels: MarkerLabels,
): Promise<readonly ConflictedFile[]> {
  const { files, tree, at } = conflict;
  refuseUndecodable(files);
  await git.ok(['update-ref', '--no-deref', '-m', 'reprise: solve', 'HEAD', at], { hooks: 'skip' });
  await bringTo(git, tree);
  const byName = ['--pathspec-from-file=-', '--pathspec-file-nul'];
  await git.ok(['--literal-pathspecs', 'reset', '--quiet', ...byName, at], {
    input: files.join('\0'),
    hooks: 'skip',
  });
  return describeConflicts(path, { ...conflict, labels });
}

/** Sets files and index to a tree. Untracked files stay, unless the tree contains their paths. */
export const bringTo = (git: Git, tree: string): Promise<string> =>
  git.ok(['read-tree', '--reset', '-u', tree], { hooks: 'skip' });

/** A name that is not UTF-8 can be neither shown in a prompt nor stored as data. */
function refuseUndecodable(files: readonly string[]): void {
  const name = files.find(file => file.includes('\ufffd'));
  if (name === undefined) return;
  throw new RepriseError('WORKSPACE_FAILED', `the name of ${printable(name)} is not UTF-8`, {
    hint: 'resolve this conflict by hand: git rebase',
  });
}

/** Returns the conflicted files that still have markers. */
export async function unsolvedFiles(
  { git, path }: ConflictWorkspace,
  { files, sides, labels }: UnsolvedRequest,
): Promise<readonly string[]> {
  const unsolved: string[] = [];
  for (const file of files) {
    const text = bytesOfFile(path, file);
    if (text === undefined || !hasMarkers(text)) continue;
    // In a file that has its own markers, such as a page about git, only the markers that were laid out count.
    if (hasLabels(text, labels) || !(await hasOwnMarkers(git, file, sides))) unsolved.push(file);
  }
  return unsolved;
}

interface UnsolvedRequest {
  readonly files: readonly string[];
  /** Commits that were merged. */
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

/** Stages all files of the workspace and returns their tree. `at` and `tree` are those of the conflict laid out there. */
export async function stageSolution(
  { git, path }: ConflictWorkspace,
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

/** A commit may contain files that git ignores. They must not get lost because the layout took them out of the index. */
async function ignoredOf(git: Git, files: readonly string[]): Promise<readonly string[]> {
  if (files.length === 0) return [];
  const args = ['check-ignore', '--no-index', '-z', '--stdin'];
  // Without the prefix, git would interpret names that begin with a colon.
  const result = await git.run(args, { input: files.map(file => `./${file}`).join('\0') });
  if (result.code > 1) throw gitFailed(args, result);
  return result.stdout
    .split('\0')
    .filter(name => name !== '')
    .map(name => name.slice('./'.length));
}

/** Whether the path is a file in the workspace itself, and not in a folder behind a symbolic link. */
const isFileBelow =
  (folder: string) =>
  (path: string): boolean => {
    const file = join(folder, path);
    const isThere = lstatSync(file, { throwIfNoEntry: false })?.isDirectory() === false;
    return isThere && realPath(dirname(file)) === dirname(file);
  };

/** Quits a rebase, merge, cherry-pick or revert that an agent started and left unfinished. HEAD and files stay. */
export async function leaveUnfinished({ git, gitDir }: ConflictWorkspace): Promise<void> {
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

/** Labels that follow the markers: `<<<<<<< ours`, `>>>>>>> theirs`. */
export interface MarkerLabels {
  readonly ours: string;
  readonly theirs: string;
}

export interface ConflictedFile {
  readonly path: string;
  readonly kind: ConflictKind;
  /** Description of the conflict and of the version in the workspace, for the prompt of the agent. */
  readonly words: string;
}

/**
 * `text`: the file has markers. `binary`: both sides changed a file that cannot be merged by lines. `deleted-by-ours` and
 * `deleted-by-theirs`: the other side changed the file. `moved`: the sides disagree on the path or its type.
 */
type ConflictKind = 'text' | 'binary' | 'deleted-by-ours' | 'deleted-by-theirs' | 'moved';

/** Whether the text has lines with all three conflict markers. Accepts text with one character per byte. */
export const hasMarkers = (text: string): boolean =>
  /^<{7,} /m.test(text) && /^={7,}\r?$/m.test(text) && /^>{7,} /m.test(text);

/** Whether the text has the markers that were laid out, recognized by their labels. */
export const hasLabels = (text: string, { ours, theirs }: MarkerLabels): boolean =>
  line('<', asBytes(ours)).test(text) && line('>', asBytes(theirs)).test(text);

/** Replaces the commit ids after the markers with readable labels. */
const relabelled = (text: string, from: MarkerLabels, to: MarkerLabels): string =>
  text
    .replace(line('<', from.ours), (_, marker: string) => `${marker}${asBytes(to.ours)}`)
    .replace(line('>', from.theirs), (_, marker: string) => `${marker}${asBytes(to.theirs)}`);

/** Matches a marker line. Git appends the name of the file to the label if the sides have different names. */
const line = (marker: '<' | '>', label: string): RegExp =>
  new RegExp(`^(${marker}{7,} )${label.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}(?=:|\\r?$)`, 'gm');

const asBytes = (text: string): string => Buffer.from(text).toString('latin1');

/** Returns the file with one character per byte. `undefined` if it is not a regular file. */
function bytesOfFile(folder: string, path: string): string | undefined {
  const file = join(folder, path);
  const isFile = lstatSync(file, { throwIfNoEntry: false })?.isFile() ?? false;
  return isFile ? readFileSync(file, 'latin1') : undefined;
}

/** Relabels the markers that git has just written, and describes every conflicted file. */
function describeConflicts(
  folder: string,
  { files, stages, sides, labels }: Omit<ConflictedMerge, 'kind' | 'tree'> & { labels: MarkerLabels },
): readonly ConflictedFile[] {
  return files.map(path => {
    const text = bytesOfFile(folder, path);
    const isMarked = text !== undefined && hasMarkers(text);
    if (isMarked) writeFileSync(join(folder, path), relabelled(text, sides, labels), 'latin1');
    return describeConflict(path, { stages, isMarked, onto: labels.ours });
  });
}

/** Describes a conflicted file. `isMarked` says whether it has markers. */
export function describeConflict(
  path: string,
  {
    stages,
    isMarked,
    onto,
  }: { readonly stages: readonly ConflictStage[]; readonly isMarked: boolean; readonly onto: string },
): ConflictedFile {
  const kind = kindOf(
    stages.filter(each => each.path === path),
    isMarked,
  );
  return { path, kind, words: words(kind, onto) };
}

function kindOf(stages: readonly ConflictStage[], isMarked: boolean): ConflictKind {
  const has = (stage: ConflictStage['stage']) => stages.some(each => each.stage === stage);
  if (stages.some(({ mode }) => mode === '160000')) return 'moved';
  if (has(2) && has(3)) return isMarked ? 'text' : 'binary';
  if (has(1) && has(2)) return 'deleted-by-theirs';
  if (has(1) && has(3)) return 'deleted-by-ours';
  return isMarked ? 'text' : 'moved';
}

function words(kind: ConflictKind, onto: string): string {
  switch (kind) {
    case 'text':
      return 'changed on both sides; markers show where';
    case 'binary':
      return `changed on both sides, and cannot be merged by lines; the workspace has the version of ${onto}`;
    case 'deleted-by-ours':
      return `deleted on ${onto}, changed by this commit; the workspace has the version of this commit`;
    case 'deleted-by-theirs':
      return `changed on ${onto}, deleted by this commit; the workspace has the version of ${onto}`;
    case 'moved':
      return `renamed, moved or replaced in different ways on ${onto} and by this commit`;
  }
}
