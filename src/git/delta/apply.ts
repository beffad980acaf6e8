import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import {
  type CommitRecord,
  type ConflictStage,
  type MergeResult,
  mergeTrees,
  readCommits,
  stampLines,
  writeCommit,
} from '../commits.ts';
import { type Git, lastLines } from '../git.ts';
import { printable } from '../names.ts';
import type { Repository } from '../repository.ts';
import { withScratchIndex } from '../scratch-index.ts';
import { setEmptyFolders, snapshot } from './capture.ts';
import { type Shadow, shadowedWorktreeOf, withShadow } from './shadow.ts';
import {
  branchRef,
  type CarryRequest,
  carryRest,
  type HeadState,
  isSameBase,
  isSameIndex,
  isSameStashes,
  newStashes,
  setStashes,
  type WorktreeState,
} from './state.ts';

interface ApplyDeltaRequest {
  readonly repository: Repository;
  /** Root of a worktree. Its state may differ from the state before the session. */
  readonly folder: string;
  readonly before: WorktreeState;
  readonly after: WorktreeState;
  /** Pack from `packDelta`. The repository must have the base of the pack. */
  readonly pack: Uint8Array;
}

/** Result of applying a session to another worktree. */
type DeltaResult =
  /** The worktree was in the state before the session, and is now in the state after it. */
  | { readonly kind: 'exact'; readonly state: WorktreeState }
  /** The worktree was in a different state, into which the changes of the session were merged. */
  | { readonly kind: 'counterfactual'; readonly state: WorktreeState }
  /** The changes could not be merged. The worktree is unchanged. */
  | { readonly kind: 'inconclusive'; readonly why: string };

/** Applies the changes of a session to another worktree. Throws CAPTURE_REFUSED like `worktreeState`. */
export async function applyDelta({
  repository,
  folder,
  before,
  after,
  pack,
}: ApplyDeltaRequest): Promise<DeltaResult> {
  const place = await shadowedWorktreeOf(repository, folder);
  return withShadow(place, {}, async shadow => {
    const [current] = await Promise.all([snapshot(shadow), unpack(place.git, pack)]);
    const states = { before, after, current };
    const isSame = isSameBase(before, current);
    const carried = isSame ? unchanged(states) : await threeWay(shadow.bare, states);
    if (carried.kind === 'inconclusive') return carried;
    const blocked = await install(shadow, { current, wanted: carried.state });
    if (blocked !== undefined) return { kind: 'inconclusive', why: blocked };
    return { kind: isSame ? 'exact' : 'counterfactual', state: carried.state };
  });
}

const unchanged = (states: CarryRequest): CarryResult => ({
  kind: 'carried',
  state: { ...states.after, ...carryRest(states, commit => commit) },
});

/** Below this number of objects, loose files are faster to write than a pack. `git fetch` uses the same limit. */
const looseLimit = 100;

/** Adds the objects of a pack to the repository. */
async function unpack(git: Git, pack: Uint8Array): Promise<void> {
  const bytes = Buffer.from(pack.buffer, pack.byteOffset, pack.byteLength);
  const count = bytes.readUInt32BE(8);
  if (count === 0) return;
  const args = count < looseLimit ? ['unpack-objects', '-q'] : ['index-pack', '--stdin', '--fix-thin'];
  // A replay can be repeated, and fsync would take longer than everything else.
  await git.ok(['-c', 'core.fsync=none', ...args], { input: bytes.toString('latin1'), encoding: 'bytes' });
}

interface StateChange {
  /** State that `snapshot` returned for the same shadow. */
  readonly current: WorktreeState;
  readonly wanted: WorktreeState;
}

/**
 * Puts the worktree into the wanted state, whose objects must be in the repository. If a file blocks that, nothing changes
 * and the result is the error message of git.
 */
async function install(shadow: Shadow, { current, wanted }: StateChange): Promise<string | undefined> {
  const { place, git } = shadow;
  if (current.tree !== wanted.tree) {
    const { code, stderr } = await git.run(['read-tree', '-m', '-u', current.tree, wanted.tree]);
    if (code !== 0) return lastLines(stderr);
  }
  await Promise.all([
    isSameIndex(current.index, wanted.index) ? undefined : installIndex(shadow, wanted),
    moveRefs(place.git, { current, wanted }),
  ]);
  // After `moveRefs`, because stashes are a ref too and git locks refs one by one.
  if (!isSameStashes(current.stashes, wanted.stashes))
    await setStashes(place.git, { current: current.stashes, wanted: wanted.stashes });
  setEmptyFolders(place.folder, { current: current.emptyFolders, wanted: wanted.emptyFolders });
  return undefined;
}

/** Sets the index of the worktree. Git keeps the cached stat data of unchanged entries. */
async function installIndex({ place }: Shadow, { index: wanted }: WorktreeState): Promise<void> {
  const { git, folder } = place;
  await git.ok(['read-tree', '--reset', wanted.tree]);
  const announced = wanted.intentToAdd.filter(path => isThere(join(folder, path)));
  if (announced.length === 0) return;
  const args = ['add', '--intent-to-add', '--force', '--pathspec-from-file=-', '--pathspec-file-nul'];
  await git.with({ env: { GIT_LITERAL_PATHSPECS: '1' } }).ok(args, { input: announced.join('\0') });
}

function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

/** Moves all refs in one transaction, with one more command if the branch of HEAD changes. */
async function moveRefs(git: Git, { current, wanted }: StateChange): Promise<void> {
  const { branch } = wanted.head;
  const isOtherBranch = branch !== null && branch !== current.head.branch;
  const lines = [...otherRefs(wanted), ...headLines(current.head, wanted.head)];
  const message = ['-m', 'reprise: apply session'];
  if (isOtherBranch) await git.ok(['symbolic-ref', ...message, 'HEAD', branchRef(branch)]);
  if (lines.length > 0) await git.ok(['update-ref', ...message, '-z', '--stdin'], { input: lines.join('') });
}

const otherRefs = ({ refs }: WorktreeState): readonly string[] =>
  Object.entries(refs).map(([name, value]) =>
    value === null ? `delete ${name}\0\0` : `update ${name}\0${value}\0\0`,
  );

function headLines(current: HeadState, { commit, branch }: HeadState): readonly string[] {
  if (commit === null || (commit === current.commit && branch === current.branch)) return [];
  if (branch === null) return [`option no-deref\0update HEAD\0${commit}\0\0`];
  return [`update ${branchRef(branch)}\0${commit}\0\0`];
}

/** Wanted state of a worktree, or the reason why there is none. */
type CarryResult =
  | { readonly kind: 'carried'; readonly state: WorktreeState }
  | { readonly kind: 'inconclusive'; readonly why: string };

/**
 * Computes the state that the session would have left if it had started from another commit and other files. Cherry-picks
 * each of its commits onto the new versions of its parents, then merges its files and its index. Writes only objects.
 */
async function threeWay(git: Git, states: CarryRequest): Promise<CarryResult> {
  try {
    return { kind: 'carried', state: await carry(git, states) };
  } catch (error) {
    if (error instanceof CarryFailed) return { kind: 'inconclusive', why: error.message };
    throw error;
  }
}

class CarryFailed extends Error {}

async function carry(git: Git, states: CarryRequest): Promise<WorktreeState> {
  const { before, after, current } = states;
  const from = before.head.commit;
  const onto = current.head.commit;
  const tip = after.head.commit;
  if (from === null || onto === null || tip === null)
    throw new CarryFailed('the session or the worktree that it is applied to has no commit');
  await refuseRewritten(git, { from, tip });
  const stashed = newStashes(before, after).map(({ commit }) => commit);
  const tips = [tip, ...stashed, ...Object.values(after.refs)].filter(commit => commit !== null);
  const carried = await carryCommits(git, { from, onto, tips });
  const rest = carryRest(states, commit => carried.commits.get(commit) ?? commit);

  const carryTree = async (part: (state: WorktreeState) => string, subject: string): Promise<string> => {
    const isCommitted = part(before) === carried.from.tree && part(current) === carried.onto.tree;
    const known = isCommitted ? carried.trees.get(part(after)) : undefined;
    return known ?? merge(git, { base: part(before), ours: part(current), theirs: part(after) }, subject);
  };
  const tree = await carryTree(state => state.tree, 'the uncommitted changes of the session');
  const isAllStaged = [before, after, current].every(state => state.index.tree === state.tree);
  const staged = isAllStaged
    ? tree
    : await carryTree(state => state.index.tree, 'the staged changes of the session');
  return { ...rest, tree, index: { tree: staged, intentToAdd: after.index.intentToAdd } };
}

/** A merge needs the commit that the session started from as a common ancestor. */
async function refuseRewritten(git: Git, { from, tip }: { from: string; tip: string }): Promise<void> {
  const isOnTop = from === tip || (await git.run(['merge-base', '--is-ancestor', from, tip])).code === 0;
  if (!isOnTop)
    throw new CarryFailed(
      `the session rewrote its first commit (${from.slice(0, 12)}), so its changes cannot be merged into another base`,
    );
}

interface CarriedCommits {
  /** New commits by the original ones. */
  readonly commits: ReadonlyMap<string, string>;
  /** New trees by the original ones. */
  readonly trees: ReadonlyMap<string, string>;
  readonly from: CommitRecord;
  readonly onto: CommitRecord;
}

async function carryCommits(
  git: Git,
  { from, onto, tips }: { from: string; onto: string; tips: readonly string[] },
): Promise<CarriedCommits> {
  const isNew = tips.some(tip => tip !== from);
  const listed = isNew ? await git.ok(['rev-list', '--reverse', '--topo-order', ...tips, `^${from}`]) : '';
  const ids = listed.split('\n').filter(id => id !== '');
  const records = await readCommits(git, [from, onto, ...ids]);
  const find = (id: string): CommitRecord => {
    const record = records.get(id);
    if (record === undefined) throw new CarryFailed(`commit ${id} is not in the repository`);
    return record;
  };
  const commits = new Map([[from, onto]]);
  const trees = new Map([[find(from).tree, find(onto).tree]]);
  const treesNow = new Map([[from, find(onto).tree]]);
  for (const id of ids) {
    const record = find(id);
    const parents = record.parents.map(parent => commits.get(parent) ?? parent);
    if (parents.every((parent, i) => parent === record.parents[i])) continue;
    const [first] = record.parents;
    const ours = first === undefined ? undefined : treesNow.get(first);
    // If the first parent is unchanged, the tree needs no merge.
    const tree =
      first === undefined || ours === undefined
        ? record.tree
        : await merge(
            git,
            { base: find(first).tree, ours, theirs: record.tree },
            `commit "${record.subject}"`,
          );
    commits.set(id, await writeCommit(git, { ...record, tree, parents }));
    trees.set(record.tree, tree);
    treesNow.set(id, tree);
  }
  return { commits, trees, from: find(from), onto: find(onto) };
}

interface ThreeWayTrees {
  readonly base: string;
  readonly ours: string;
  readonly theirs: string;
}

async function merge(git: Git, { base, ours, theirs }: ThreeWayTrees, subject: string): Promise<string> {
  if (base === ours || ours === theirs) return theirs;
  if (base === theirs) return ours;
  // Git merges commits and finds the merge base itself. The option to name one needs a newer git than Reprise requires.
  const commit = (tree: string, parents: readonly string[]) =>
    writeCommit(git, { tree, parents, lines: stampLines, message: '' });
  const root = await commit(base, []);
  const [one, other] = await Promise.all([commit(ours, [root]), commit(theirs, [root])]);
  const merged = await mergeTrees(git, one, other);
  if (merged.kind === 'clean') return merged.tree;
  const solved = await solvedAsBefore(git, merged);
  if (solved !== undefined) return solved;
  throw new CarryFailed(
    `cannot merge ${subject} into the other base: conflicts in ${merged.files.map(printable).join(', ')}`,
  );
}

/** Returns the merged tree if the session had resolved the very same conflict in every conflicting file. */
async function solvedAsBefore(
  git: Git,
  { tree, files, stages }: Extract<MergeResult, { kind: 'conflict' }>,
): Promise<string | undefined> {
  const solutions: ConflictStage[] = [];
  for (const file of files) {
    const [base, ours, theirs] = ([1, 2, 3] as const).map(stage =>
      stages.find(each => each.path === file && each.stage === stage),
    );
    if (!base || !ours || !theirs) return undefined;
    const [before, now] = await Promise.all([base, ours].map(({ id }) => git.ok(['cat-file', 'blob', id])));
    if (!isSameConflict(before ?? '', now ?? '')) return undefined;
    solutions.push(theirs);
  }
  return withScratchIndex(git, async side => {
    await side.ok(['read-tree', tree]);
    for (const { mode, id, path } of solutions)
      await side.ok(['update-index', '--add', '--cacheinfo', `${mode},${id},${path}`]);
    return side.line(['write-tree']);
  });
}

/** Whether two files contain the same conflict, apart from the ids of the commits in their markers. */
export const isSameConflict = (a: string, b: string): boolean =>
  isMarked.test(a) && unnamed(a) === unnamed(b);

/** Matches the labels that `layOut` writes. */
const isMarked = /^>>>>>>> [0-9a-f]{10} \(/m;

const unnamed = (text: string): string => text.replaceAll(/^>>>>>>> [0-9a-f]{10} \(/gm, '>>>>>>> (');
