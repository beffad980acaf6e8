import { createHash } from 'node:crypto';
import { type Dirent, existsSync, lstatSync, mkdirSync, readdirSync, rmdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import { readCommits, readLooseCommit } from '../commits.ts';
import { type Git, gitFailed, lastLines } from '../git.ts';
import type { Repository } from '../repository.ts';
import { copyIndex } from '../scratch-index.ts';
import { worktreeStatus } from '../workspace/commit.ts';
import {
  embedded,
  refuseUnfinished,
  type Shadow,
  type ShadowedWorktree,
  shadowedWorktreeOf,
  unfinishedError,
  withShadow,
} from './shadow.ts';
import { hasStashes, stashesOf, type WorktreeState } from './state.ts';

/**
 * Captures the state of the worktree. Afterwards the index of the shadow contains all files, with their stat data. Throws
 * CAPTURE_REFUSED if a state cannot represent the worktree.
 */
export async function snapshot(shadow: Shadow): Promise<WorktreeState> {
  const { place } = shadow;
  refuseUnfinished(place);
  const [status, entries] = await Promise.all([worktreeStatus(place.git), indexEntries(place.git)]);
  refuseUnmerged(place, entries);
  const { head: commit = null, branch = null } = status;
  const [stashes, files] = await Promise.all([
    status.stashes === 0 ? [] : stashesOf(place.git),
    filesOf(shadow, entries),
  ]);
  return { head: { commit, branch }, ...files, stashes, refs: {} };
}

function refuseUnmerged({ folder }: ShadowedWorktree, entries: readonly IndexEntry[]): void {
  const unmerged = pathsOf(entries, ({ stage }) => stage !== '0');
  if (unmerged.length > 0) throw unfinishedError(folder, 'merge', [...new Set(unmerged)]);
}

type FileState = Pick<WorktreeState, 'tree' | 'index' | 'emptyFolders'>;

async function filesOf(shadow: Shadow, entries: readonly IndexEntry[]): Promise<FileState> {
  const { place, git } = shadow;
  const staged = await copyRealIndex(shadow, entries);
  const isChanged = await addEverything(shadow);
  const [tree, all] = isChanged
    ? await Promise.all([git.line(['write-tree']), indexEntries(git)])
    : [staged, entries];
  const known = new Set(pathsOf(entries, isGitlink));
  const others = pathsOf(all, isGitlink).filter(path => !known.has(path));
  if (others.length > 0) throw embedded(place.folder, others);
  return {
    tree,
    index: { tree: staged, intentToAdd: await announcedIn(shadow, entries, staged) },
    emptyFolders: emptyFoldersOf(place, all),
  };
}

const emptyFoldersOf = ({ folder }: ShadowedWorktree, entries: readonly IndexEntry[]): readonly string[] =>
  emptyFoldersIn(folder, {
    files: pathsOf(entries, () => true),
    gitlinks: new Set(pathsOf(entries, isGitlink)),
  });

/** Entry of an index, as `git ls-files` prints it. */
interface IndexEntry {
  /** Letter for the state of the file; `S` if git does not look at it. */
  readonly tag: string;
  readonly mode: string;
  readonly id: string;
  readonly stage: string;
  readonly path: string;
}

/** Lists the entries of an index, with whole folders of a sparse index as one. */
async function indexEntries(git: Git): Promise<readonly IndexEntry[]> {
  const output = await git.ok(['ls-files', '-z', '-v', '--stage', '--sparse']);
  return output
    .split('\0')
    .filter(line => line !== '')
    .map(line => {
      const tab = line.indexOf('\t');
      const [tag = '', mode = '', id = '', stage = ''] = line.slice(0, tab).split(' ');
      return { tag, mode, id, stage, path: line.slice(tab + 1) };
    });
}

const pathsOf = (entries: readonly IndexEntry[], wanted: (entry: IndexEntry) => boolean): readonly string[] =>
  entries.filter(wanted).map(({ path }) => path);

const isGitlink = ({ mode }: IndexEntry): boolean => mode === '160000';

/** Returns the files added with `--intent-to-add`: the index lists them as empty files, and its tree omits them. */
async function announcedIn(
  { git }: Shadow,
  entries: readonly IndexEntry[],
  tree: string,
): Promise<readonly string[]> {
  const empty = entries.filter(({ id }) => emptyBlobs.has(id));
  if (empty.length === 0) return [];
  const listed = (await git.ok(['ls-tree', '-r', '-z', '--name-only', '--full-tree', tree])).split('\0');
  const inTree = new Set(listed);
  return pathsOf(empty, ({ path }) => !inTree.has(path));
}

/** Ids of the empty file, in SHA-1 and SHA-256. */
const emptyBlobs: ReadonlySet<string> = new Set(
  ['sha1', 'sha256'].map(algorithm => createHash(algorithm).update('blob 0\0').digest('hex')),
);

/**
 * Copies the index to the shadow and refreshes the copy with the attributes of the repository, so that it knows all
 * unchanged files, including converted ones and those with an `assume-unchanged` bit. The shadow has no attributes and
 * would take a touched file for a changed one; it relies on the stat data of the copy instead. Returns the tree of what is staged.
 */
async function copyRealIndex({ place, git, index }: Shadow, entries: readonly IndexEntry[]): Promise<string> {
  const staged = `${index}-staged`;
  for (const copy of [index, staged]) copyIndex(join(place.gitDir, 'index'), copy);
  const real = git.with({ env: { GIT_DIR: place.gitDir } });
  if (entries.some(({ mode }) => mode === '040000'))
    throw new RepriseError('CAPTURE_REFUSED', `the index of ${place.folder} cannot be captured`, {
      hint: 'turn the sparse index off: git sparse-checkout reapply --no-sparse-index',
    });
  const [tree] = await Promise.all([
    real.with({ env: { GIT_INDEX_FILE: staged } }).line(['write-tree']),
    real.run(['update-index', '-q', '--no-split-index', '--really-refresh']),
  ]);
  // A file that is not there is hidden on purpose, in a sparse checkout.
  const hidden = pathsOf(entries, ({ tag, path }) => /s/i.test(tag) && existsSync(join(place.folder, path)));
  if (hidden.length > 0)
    await real.ok(['update-index', '-z', '--no-skip-worktree', '--stdin'], { input: hidden.join('\0') });
  trustIndex(index);
  return tree;
}

/** Git does not read a file again if the index looks younger than the file. */
function trustIndex(index: string): void {
  const later = Date.now() / 1000 + 60;
  if (existsSync(index)) utimesSync(index, later, later);
}

/** Adds all files to the index of the shadow. Returns whether that changed anything. */
async function addEverything({ git, index, place }: Shadow): Promise<boolean> {
  const args = [
    '-c',
    'advice.addEmbeddedRepo=false',
    '-c',
    'core.safecrlf=false',
    'add',
    '--all',
    '--verbose',
  ];
  const result = await git.run(args);
  const withoutCommit = /'(.*)\/' does not have a commit checked out/.exec(result.stderr)?.[1];
  if (withoutCommit !== undefined) throw embedded(place.folder, [withoutCommit]);
  if (result.code !== 0) throw cannotRead(place, result.stderr) ?? gitFailed(args, result);
  trustIndex(index);
  return result.stdout !== '';
}

const cannotRead = ({ folder }: ShadowedWorktree, stderr: string): RepriseError | undefined =>
  /Permission denied/.test(stderr)
    ? new RepriseError('CAPTURE_REFUSED', `not every file in ${folder} can be read: ${lastLines(stderr)}`)
    : undefined;

interface Contents {
  /** Files that git does not ignore. */
  readonly files: readonly string[];
  /** Folders of submodules. */
  readonly gitlinks: ReadonlySet<string>;
}

/**
 * Returns the innermost folders that contain no file. The search in a folder without tracked files stops at its first
 * file, so that large ignored folders cost nothing.
 */
function emptyFoldersIn(top: string, { files, gitlinks }: Contents): readonly string[] {
  const kept = foldersOf(files);
  const found: string[] = [];
  const visit = (folder: string): void => {
    for (const name of foldersAt(join(top, folder)).folders) {
      const path = folder === '' ? name : `${folder}/${name}`;
      if (kept.has(path)) visit(path);
      else if (path !== '.git' && !gitlinks.has(path)) found.push(...(hollow(top, path) ?? []));
    }
  };
  visit('');
  return found.sort();
}

function foldersOf(files: readonly string[]): ReadonlySet<string> {
  const folders = new Set<string>();
  for (const file of files) {
    for (let end = file.lastIndexOf('/'); end > 0; end = file.lastIndexOf('/', end - 1)) {
      const folder = file.slice(0, end);
      if (folders.has(folder)) break;
      folders.add(folder);
    }
  }
  return folders;
}

/** Returns the innermost empty folders, or `undefined` as soon as a file is found. */
function hollow(top: string, path: string): readonly string[] | undefined {
  const { folders, hasFiles } = foldersAt(join(top, path));
  if (hasFiles) return undefined;
  if (folders.length === 0) return [path];
  const found: string[] = [];
  for (const name of folders) {
    const inner = hollow(top, `${path}/${name}`);
    if (inner === undefined) return undefined;
    found.push(...inner);
  }
  return found;
}

function foldersAt(path: string): { readonly folders: readonly string[]; readonly hasFiles: boolean } {
  let entries: readonly Dirent[];
  try {
    entries = readdirSync(path, { withFileTypes: true });
  } catch {
    // A folder that is unreadable or was removed meanwhile does not count as empty.
    return { folders: [], hasFiles: true };
  }
  const folders = entries.filter(entry => entry.isDirectory()).map(entry => entry.name);
  return { folders, hasFiles: folders.length < entries.length };
}

/** Creates the folders of `wanted`, and removes the other folders of `current` if they are empty. */
export function setEmptyFolders(
  top: string,
  { current, wanted }: { current: readonly string[]; wanted: readonly string[] },
): void {
  const keep = new Set(wanted);
  for (const path of current) if (!keep.has(path)) removeHollow(top, path);
  for (const path of wanted) if (!crossesLink(top, path)) mkdirSync(join(top, path), { recursive: true });
}

/** Whether the path leads through a symbolic link, possibly out of the worktree. */
const crossesLink = (top: string, path: string): boolean => {
  const parts = path.split('/');
  return parts.some((_, index) =>
    lstatSync(join(top, ...parts.slice(0, index + 1)), { throwIfNoEntry: false })?.isSymbolicLink(),
  );
};

function removeHollow(top: string, path: string): void {
  try {
    for (let folder = path; folder !== ''; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/'))))
      rmdirSync(join(top, folder));
  } catch {
    // The folder is not empty, or does not exist.
  }
}

interface WorktreeStateRequest {
  readonly repository: Repository;
  /** Root of a worktree. */
  readonly folder: string;
  /** Folder for the objects of the state that the repository does not have. The repository itself gets no objects. */
  readonly objectsDir: string;
}

/**
 * Captures the state of a worktree without changing it or its index. The state does not include ignored files, modes other
 * than the executable bit, times, reflogs and settings. Throws CAPTURE_REFUSED if the worktree contains another
 * repository, or if a merge, rebase, cherry-pick or revert is unfinished.
 */
export const worktreeState = async ({
  repository,
  folder,
  objectsDir,
}: WorktreeStateRequest): Promise<WorktreeState> =>
  withShadow(await shadowedWorktreeOf(repository, folder), { objectsDir }, snapshot);

/** Cache of trees by commit. Commits are immutable, and many workspaces start from the same one. */
const treesOfCommits = new Map<string, Promise<string>>();

function treeOf({ git, commonDir }: Repository, commit: string): Promise<string> {
  const known = treesOfCommits.get(commit);
  if (known !== undefined) return known;
  const loose = readLooseCommit({ commonDir }, commit);
  const asked = loose
    ? Promise.resolve(loose.tree)
    : git.line(['rev-parse', '--verify', '--end-of-options', `${commit}^{tree}`]);
  treesOfCommits.set(commit, asked);
  asked.catch(() => treesOfCommits.delete(commit));
  return asked;
}

/** Returns the state of a worktree right after the checkout of a commit. Runs git once per commit. */
export async function stateOfCommit(request: {
  readonly repository: Repository;
  readonly commit: string;
  readonly branch: string | null;
}): Promise<WorktreeState> {
  const { repository, commit, branch } = request;
  const tree = await treeOf(repository, commit);
  return {
    head: { commit, branch },
    tree,
    index: { tree, intentToAdd: [] },
    stashes: hasStashes(repository) ? await stashesOf(repository.git) : [],
    emptyFolders: [],
    refs: {},
  };
}

/**
 * Returns the state of a worktree before all of its changes were committed: the files of the commit, with HEAD at its
 * parent. If the commit is by another author, there were no changes to commit, and the state is that of the commit itself.
 */
export async function stateBeforeCommit(request: {
  readonly repository: Repository;
  readonly commit: string;
  readonly branch: string | null;
  readonly author: string;
}): Promise<WorktreeState> {
  const { repository, commit, branch, author } = request;
  const state = await stateOfCommit({ repository, commit, branch });
  const own =
    readLooseCommit(repository, commit) ?? (await readCommits(repository.git, [commit])).get(commit);
  const [parent] = own?.parents ?? [];
  if (own === undefined || parent === undefined || !own.lines.some(line => isBy(author, line))) return state;
  const index = { tree: await treeOf(repository, parent), intentToAdd: [] };
  return { ...state, head: { commit: parent, branch }, index };
}

const isBy = (email: string, line: string): boolean =>
  line.startsWith('author ') && line.includes(` <${email}> `);
