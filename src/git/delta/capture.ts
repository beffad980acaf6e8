import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RepriseError } from '../../core/errors.ts';
import { doubtfulFiles } from '../doubtful-files.ts';
import { editIndex, type IndexEntry, type IndexFile, noIndex, parseIndex } from '../fast/index-file.ts';
import { type Git, gitFailed, lastLines } from '../git.ts';
import { headInFiles } from '../refs.ts';
import { trustIndex } from '../side-index.ts';
import { convertsFiles } from './conversion.ts';
import { emptyFoldersIn } from './empty-folders.ts';
import { embedded, type Place, refuseUnfinished, unfinishedError } from './place.ts';
import type { Shadow } from './shadow.ts';
import { stashesOf } from './stashes.ts';
import type { Head, WorktreeState } from './state.ts';

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

async function headOf({ git, gitDir, repository }: Place): Promise<Head> {
  const head = headInFiles({ gitDir, commonDir: repository.commonDir });
  return head ? { commit: head.commit, branch: head.branch ?? null } : askForHead(git);
}

async function askForHead(git: Git): Promise<Head> {
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
  const forget = doubtfulFiles({ bytes, entries: seen, folder: place.folder, written: stat.mtimeNs });
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

function readIndex({ folder, oidBytes }: Place, bytes: Buffer): IndexFile {
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

const cannotRead = ({ folder }: Place, stderr: string): RepriseError | undefined =>
  /Permission denied/.test(stderr)
    ? new RepriseError('CAPTURE_REFUSED', `not every file in ${folder} can be read: ${lastLines(stderr)}`)
    : undefined;

const treeOfIndex = ({ git }: Shadow, index: string): Promise<string> =>
  git.with({ env: { GIT_INDEX_FILE: index } }).line(['write-tree']);
