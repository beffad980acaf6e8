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
 * How the worktree stands. Afterwards the index of the shadow holds the tree of all files, with what git knows about
 * them on disk. Throws CAPTURE_REFUSED where a state cannot hold all that is there.
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

/** Two copies: one to put everything into, and one to ask what is staged where git has not noted it. */
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
  // A file that is not there is hidden on purpose, in a sparse checkout.
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
 * Where files on disk are not what is stored, git finds out with the attributes of the repository which are unchanged.
 * Without them, it would take those for changed that were only touched.
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
  /** All files that git would keep. */
  readonly files: readonly string[];
  /** Folders that belong to other repositories. */
  readonly gitlinks: ReadonlySet<string>;
}

/**
 * Folders in which there is no file at all, the innermost ones. Folders that hold only files that git ignores are not
 * looked through, so that large ones cost nothing.
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

/** `undefined` as soon as one file is found. */
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
    // One that may not be read, or is gone meanwhile, is not called empty.
    return { folders: [], hasFiles: true };
  }
  const folders = entries.filter(entry => entry.isDirectory()).map(entry => entry.name);
  return { folders, hasFiles: folders.length < entries.length };
}

/** Makes those of `wanted`, and removes those of `current` that are not wanted as far as nothing is inside. */
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
    // Something is inside, or it is gone already.
  }
}

interface WorktreeStateRequest {
  readonly repository: Repository;
  /** The top of a worktree. */
  readonly folder: string;
  /** A folder for the objects that the state names and the repository does not have. It gets none. */
  readonly objectsDir: string;
}

/**
 * How a worktree stands. Nothing of it is changed, not even its index. Not in it: what git ignores, modes other than the
 * x bit, times, reflogs and settings. Throws CAPTURE_REFUSED if another repository is inside, or if a merge, rebase,
 * cherry-pick or revert is unfinished.
 */
export const worktreeState = ({
  repository,
  folder,
  objectsDir,
}: WorktreeStateRequest): Promise<WorktreeState> =>
  withShadow(shadowedWorktreeOf(repository, folder), { objectsDir }, snapshot);

/** What a commit holds never changes, and many workspaces begin with the same one. */
const treesOfCommits = new Map<string, Promise<string>>();

/** The state of a worktree in which a commit was just checked out. Asks git once for each commit. */
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
 * The state of a worktree whose every change somebody then committed: the files of the commit, on the commit before. The
 * commit itself if it is not by that author, because then there was nothing left to commit.
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
