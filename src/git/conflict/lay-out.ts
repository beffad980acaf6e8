import { existsSync, lstatSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import type { Conflict, ConflictedMerge, ConflictStage } from '../commits.ts';
import { type Git, gitFailed } from '../git.ts';
import { removeIfThere } from '../lock-file.ts';
import { printable } from '../names.ts';
import type { Repository } from '../repository.ts';
import { refuseEmbedded } from '../workspace/commit.ts';
import { gitInside, realPath, restoreLink } from '../workspace/entries.ts';
import { ownWorkspace } from '../workspace/reset.ts';

/** The workspace in which conflicts are solved. */
export interface ConflictWorkspace {
  readonly path: string;
  readonly gitDir: string;
  readonly branch: string;
  readonly git: Git;
}

/** Throws WORKSPACE_FAILED if it is not the workspace of that branch. */
export function conflictWorkspaceAt(
  repository: Repository,
  { path, branch }: { path: string; branch: string },
): ConflictWorkspace {
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
  { git, path }: ConflictWorkspace,
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
  { git, path }: ConflictWorkspace,
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

interface UnsolvedRequest {
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

/** What stands behind the markers: `<<<<<<< ours`, `>>>>>>> theirs`. */
export interface MarkerLabels {
  readonly ours: string;
  readonly theirs: string;
}

export interface ConflictedFile {
  readonly path: string;
  readonly kind: ConflictKind;
  /** What happened to it and how it lies there, for whoever has to solve it. */
  readonly words: string;
}

/**
 * `text`: with markers in it. `binary`: changed by both, but not to be merged line by line. `deleted-by-ours`,
 * `deleted-by-theirs`: and changed by the other. `moved`: the two disagree on what the path is.
 */
type ConflictKind = 'text' | 'binary' | 'deleted-by-ours' | 'deleted-by-theirs' | 'moved';

/** Whether conflicts were left in a text: it has lines with all three markers. Characters may stand for bytes. */
export const hasMarkers = (text: string): boolean =>
  /^<{7,} /m.test(text) && /^={7,}\r?$/m.test(text) && /^>{7,} /m.test(text);

/** The same for exactly what was laid out, for files that have markers of their own. */
export const hasLabels = (text: string, { ours, theirs }: MarkerLabels): boolean =>
  line('<', asBytes(ours)).test(text) && line('>', asBytes(theirs)).test(text);

/** Names of commits behind the markers become words. */
const relabelled = (text: string, from: MarkerLabels, to: MarkerLabels): string =>
  text
    .replace(line('<', from.ours), (_, marker: string) => `${marker}${asBytes(to.ours)}`)
    .replace(line('>', from.theirs), (_, marker: string) => `${marker}${asBytes(to.theirs)}`);

/** Git adds the name of the file to a label if that differs. */
const line = (marker: '<' | '>', label: string): RegExp =>
  new RegExp(`^(${marker}{7,} )${label.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}(?=:|\\r?$)`, 'gm');

const asBytes = (text: string): string => Buffer.from(text).toString('latin1');

/** One character for each byte; `undefined` if it is not a plain file. */
function bytesOfFile(folder: string, path: string): string | undefined {
  const file = join(folder, path);
  const isFile = lstatSync(file, { throwIfNoEntry: false })?.isFile() ?? false;
  return isFile ? readFileSync(file, 'latin1') : undefined;
}

/** Puts words behind the markers of what git has just laid out, and says how each file stands. */
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

/** How a file stands of which the sides have `stages`; `isMarked`: with markers in it. */
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
      return `changed on both sides, and cannot be merged line by line; it is here as ${onto} has it`;
    case 'deleted-by-ours':
      return `deleted on ${onto}, changed by this commit; it is here as this commit has it`;
    case 'deleted-by-theirs':
      return `changed on ${onto}, deleted by this commit; it is here as ${onto} has it`;
    case 'moved':
      return `renamed, moved or replaced in different ways on ${onto} and by this commit`;
  }
}
