import {
  type Dirent,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import { editIndex, type IndexEntry, type IndexFile, noIndex, parseIndex } from '../fast/index-file.ts';
import { racyFiles, trustIndex } from '../fast/stage.ts';
import { type Git, gitFailed, lastLines } from '../git.ts';
import { headInFiles } from '../refs.ts';
import type { Repository } from '../repository.ts';
import {
  embedded,
  refuseUnfinished,
  type Shadow,
  type ShadowedWorktree,
  shadowedWorktreeOf,
  unfinishedError,
  withShadow,
} from './shadow.ts';
import { convertsFiles, type HeadState, stashesOf, type WorktreeState } from './state.ts';

/**
 * Captures the state of the worktree. Afterwards the index of the shadow contains all files, with their stat data. Throws
 * CAPTURE_REFUSED if a state cannot represent the worktree.
 */
export async function snapshot(shadow: Shadow): Promise<WorktreeState> {
  const { place } = shadow;
  refuseUnfinished(place);
  const [head, stashes, files] = await Promise.all([
    headOf(place),
    stashesOf(place.repository),
    filesOf(shadow),
  ]);
  return { head, ...files, stashes, refs: {} };
}

async function headOf({ git, gitDir, repository }: ShadowedWorktree): Promise<HeadState> {
  const head = headInFiles({ gitDir, commonDir: repository.commonDir });
  return head ? { commit: head.commit, branch: head.branch ?? null } : askForHead(git);
}

async function askForHead(git: Git): Promise<HeadState> {
  const args = ['rev-parse', '--revs-only', 'HEAD', '--symbolic-full-name', 'HEAD'];
  const [commit = '', name = ''] = (await git.ok(args)).split('\n');
  if (commit !== '') return { commit, branch: branchOf(name) };
  return { commit: null, branch: branchOf(await git.line(['symbolic-ref', 'HEAD'])) };
}

const branchOf = (ref: string): string | null => /^refs\/heads\/(.+)$/s.exec(ref)?.[1] ?? null;

async function filesOf(shadow: Shadow): Promise<Pick<WorktreeState, 'tree' | 'index' | 'emptyFolders'>> {
  const { place, index } = shadow;
  const staged = await copyRealIndex(shadow);
  const unmerged = staged.entries.filter(entry => entry.isUnmerged).map(entry => entry.path);
  if (unmerged.length > 0) throw unfinishedError(place.folder, 'merge', [...new Set(unmerged)]);
  const adding = addEverything(shadow, staged);
  const [stagedTree, all] = await Promise.all([
    staged.tree ?? treeOfIndex(shadow, stagedCopy(shadow)),
    adding,
  ]);
  const writing = all.tree ?? treeOfIndex(shadow, index);
  const emptyFolders = emptyFoldersIn(place.folder, {
    files: all.entries.map(entry => entry.path),
    gitlinks: new Set(all.entries.filter(entry => entry.isGitlink).map(entry => entry.path)),
  });
  const intentToAdd = staged.entries.filter(entry => entry.isIntentToAdd).map(entry => entry.path);
  return { tree: await writing, index: { tree: stagedTree, intentToAdd }, emptyFolders };
}

const stagedCopy = ({ index }: Shadow): string => `${index}-staged`;

/** Copies the index: once to add all files to it, and once more to write its tree unless the index has that cached. */
async function copyRealIndex(shadow: Shadow): Promise<IndexFile> {
  const { place, index } = shadow;
  const real = join(place.gitDir, 'index');
  const stat = statSync(real, { bigint: true, throwIfNoEntry: false });
  if (stat === undefined) return noIndex;
  let bytes = readFileSync(real);
  let read = readIndex(place, bytes);
  if (read.isSplit) {
    writeFileSync(index, bytes);
    await place.git.with({ env: { GIT_INDEX_FILE: index } }).ok(['update-index', '--no-split-index']);
    bytes = readFileSync(index);
    read = readIndex(place, bytes);
  }
  const { entries, tree } = read;
  // A skipped file that does not exist is outside of a sparse checkout, and stays hidden.
  const isHiding = (entry: IndexEntry) =>
    entry.isAssumedUnchanged || (entry.isSkipped && existsSync(join(place.folder, entry.path)));
  const show = entries.filter(isHiding);
  const seen = entries.filter(entry => !entry.isSkipped || show.includes(entry));
  const forget = racyFiles({ bytes, entries: seen, folder: place.folder, written: stat.mtimeNs });
  writeFileSync(index, editIndex(bytes, { show, forget }, place.oidBytes));
  if (tree === undefined) writeFileSync(stagedCopy(shadow), bytes);
  if (await convertsFiles(place)) await settleUnchanged(shadow);
  trustIndex(index);
  return read;
}

/**
 * Refreshes the index with the attributes of the repository, which convert files on checkout. Without them, git would
 * report a converted file as changed although it was only touched.
 */
async function settleUnchanged({ place, index }: Shadow): Promise<void> {
  trustIndex(index);
  const args = ['update-index', '-q', '--refresh'];
  const result = await place.git.with({ env: { GIT_INDEX_FILE: index } }).run(args);
  if (result.code > 1) throw gitFailed(args, result);
}

function readIndex({ folder, oidBytes }: ShadowedWorktree, bytes: Buffer): IndexFile {
  const read = parseIndex(bytes, oidBytes);
  if (read !== undefined && !read.isSparse) return read;
  throw new RepriseError('CAPTURE_REFUSED', `the index of ${folder} is in a format that cannot be captured`, {
    hint: read ? 'turn the sparse index off: git sparse-checkout reapply --no-sparse-index' : undefined,
  });
}

async function addEverything({ git, index, place }: Shadow, staged: IndexFile): Promise<IndexFile> {
  const args = ['-c', 'advice.addEmbeddedRepo=false', '-c', 'core.safecrlf=false', 'add', '--all'];
  const result = await git.run(args);
  const withoutCommit = /'(.*)\/' does not have a commit checked out/.exec(result.stderr)?.[1];
  if (withoutCommit !== undefined) throw embedded(place.folder, [withoutCommit]);
  if (result.code !== 0) throw cannotRead(place, result.stderr) ?? gitFailed(args, result);
  const all = existsSync(index) ? readIndex(place, readFileSync(index)) : noIndex;
  if (all !== noIndex) trustIndex(index);
  const known = new Set(staged.entries.filter(entry => entry.isGitlink).map(entry => entry.path));
  const others = all.entries.filter(entry => entry.isGitlink && !known.has(entry.path));
  if (others.length > 0)
    throw embedded(
      place.folder,
      others.map(entry => entry.path),
    );
  return all;
}

const cannotRead = ({ folder }: ShadowedWorktree, stderr: string): RepriseError | undefined =>
  /Permission denied/.test(stderr)
    ? new RepriseError('CAPTURE_REFUSED', `not every file in ${folder} can be read: ${lastLines(stderr)}`)
    : undefined;

const treeOfIndex = ({ git }: Shadow, index: string): Promise<string> =>
  git.with({ env: { GIT_INDEX_FILE: index } }).line(['write-tree']);

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
  for (const path of wanted) mkdirSync(join(top, path), { recursive: true });
}

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
export const worktreeState = ({
  repository,
  folder,
  objectsDir,
}: WorktreeStateRequest): Promise<WorktreeState> =>
  withShadow(shadowedWorktreeOf(repository, folder), { objectsDir }, snapshot);

/** Cache of trees by commit. Commits are immutable, and many workspaces start from the same one. */
const treesOfCommits = new Map<string, Promise<string>>();

/** Returns the state of a worktree right after the checkout of a commit. Runs git once per commit. */
export async function stateOfCommit(request: {
  readonly repository: Repository;
  readonly commit: string;
  readonly branch: string | null;
}): Promise<WorktreeState> {
  const { repository, commit, branch } = request;
  const known = treesOfCommits.get(commit);
  const asked =
    known ?? repository.git.line(['rev-parse', '--verify', '--end-of-options', `${commit}^{tree}`]);
  if (known === undefined) treesOfCommits.set(commit, asked);
  const tree = await asked.catch(error => {
    treesOfCommits.delete(commit);
    throw error;
  });
  return {
    head: { commit, branch },
    tree,
    index: { tree, intentToAdd: [] },
    stashes: await stashesOf(repository),
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
  const args = ['show', '--no-patch', '--format=%H %T %ae', commit, `${commit}^`, '--'];
  const { code, stdout } = await repository.git.run(args);
  const [own = '', parent = ''] = stdout.split('\n');
  const [, tree = '', email] = own.split(' ');
  const [parentCommit = '', parentTree = ''] = parent.split(' ');
  const state = await stateOfCommit({ repository, commit, branch });
  if (code !== 0 || email !== author) return state;
  return {
    ...state,
    head: { commit: parentCommit, branch },
    tree,
    index: { tree: parentTree, intentToAdd: [] },
  };
}
