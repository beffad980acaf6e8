import { constants, copyFileSync, lstatSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import {
  type CommitRecord,
  type ConflictStage,
  type MergeResult,
  mergeTrees,
  readCommits,
  stampLines,
  writeCommit,
} from '../commits.ts';
import { setAge, withScratchIndex } from '../fast/stage.ts';
import { hasCode } from '../files.ts';
import { type Git, lastLines } from '../git.ts';
import { printable } from '../names.ts';
import type { Repository } from '../repository.ts';
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
  /** The top of a worktree. It need not stand as the other did before the session. */
  readonly folder: string;
  readonly before: WorktreeState;
  readonly after: WorktreeState;
  /** From `packDelta`. The repository must have the base that it was made for. */
  readonly pack: Uint8Array;
}

/** What became of a session in another worktree. */
type DeltaResult =
  /** It stood as the other did before the session, and stands as that did after it. */
  | { readonly kind: 'exact'; readonly state: WorktreeState }
  /** It stood in another way: what the session did was merged into that. */
  | { readonly kind: 'counterfactual'; readonly state: WorktreeState }
  /** That was not possible. The worktree is as it was. */
  | { readonly kind: 'inconclusive'; readonly why: string };

/** Does to a worktree what a session did to the one that it worked in. Throws CAPTURE_REFUSED like `worktreeState`. */
export function applyDelta({
  repository,
  folder,
  before,
  after,
  pack,
}: ApplyDeltaRequest): Promise<DeltaResult> {
  const place = shadowedWorktreeOf(repository, folder);
  return withShadow(place, {}, async shadow => {
    const [current] = await Promise.all([snapshot(shadow), unpack(place.git, pack)]);
    const states = { before, after, current };
    const isSame = isSameBase(before, current);
    const carried = isSame ? asItWas(states) : await threeWay(shadow.bare, states);
    if (carried.kind === 'inconclusive') return carried;
    const blocked = await install(shadow, { current, wanted: carried.state });
    if (blocked !== undefined) return { kind: 'inconclusive', why: blocked };
    return { kind: isSame ? 'exact' : 'counterfactual', state: carried.state };
  });
}

const asItWas = (states: CarryRequest): CarryResult => ({
  kind: 'carried',
  state: { ...states.after, ...carryRest(states, commit => commit) },
});

/** Below this, single files are quicker to write than a pack with its index; `git fetch` draws the line here too. */
const looseLimit = 100;

/** Puts the objects of a pack into the repository. */
async function unpack(git: Git, pack: Uint8Array): Promise<void> {
  const bytes = Buffer.from(pack.buffer, pack.byteOffset, pack.byteLength);
  const count = bytes.readUInt32BE(8);
  if (count === 0) return;
  const args = count < looseLimit ? ['unpack-objects', '-q'] : ['index-pack', '--stdin', '--fix-thin'];
  // What is replayed can be replayed again: waiting for the disk would take longer than all the rest.
  await git.ok(['-c', 'core.fsync=none', ...args], { input: bytes.toString('latin1'), encoding: 'bytes' });
}

interface StateChange {
  /** As `snapshot` found it with the same shadow. */
  readonly current: WorktreeState;
  readonly wanted: WorktreeState;
}

/**
 * Makes the worktree stand as wanted. All objects that this names must be there. If a file is in the way, nothing is
 * changed and the answer is what git says about it.
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
async function moveRefs(git: Git, { current, wanted }: StateChange): Promise<void> {
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

function headLines(current: HeadState, { commit, branch }: HeadState): readonly string[] {
  if (commit === null || (commit === current.commit && branch === current.branch)) return [];
  if (branch === null) return [`option no-deref\0update HEAD\0${commit}\0\0`];
  return [`update ${branchRef(branch)}\0${commit}\0\0`];
}

/** The state that a worktree should come to, or why there is none. */
type CarryResult =
  | { readonly kind: 'carried'; readonly state: WorktreeState }
  | { readonly kind: 'inconclusive'; readonly why: string };

/**
 * What a session would have left behind had it begun with another commit and other files: each of its commits is merged
 * onto what its parents have become, then its files and its index are. Only objects are written.
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
    throw new CarryFailed('the session, or what it should be carried over to, has no commit');
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
  const tree = await carryTree(state => state.tree, 'what it did not commit');
  const isAllStaged = [before, after, current].every(state => state.index.tree === state.tree);
  const staged = isAllStaged ? tree : await carryTree(state => state.index.tree, 'what it staged');
  return { ...rest, tree, index: { tree: staged, intentToAdd: after.index.intentToAdd } };
}

/** Without a parent in common with the other base there is nothing that could be merged. */
async function refuseRewritten(git: Git, { from, tip }: { from: string; tip: string }): Promise<void> {
  const isOnTop = from === tip || (await git.run(['merge-base', '--is-ancestor', from, tip])).code === 0;
  if (!isOnTop)
    throw new CarryFailed(
      `the session left the commit that it began with (${from.slice(0, 12)}) out of its branch, which means nothing on another base`,
    );
}

interface CarriedCommits {
  /** What commits have become. */
  readonly commits: ReadonlyMap<string, string>;
  /** What their trees have become. */
  readonly trees: ReadonlyMap<string, string>;
  readonly from: CommitRecord;
  readonly onto: CommitRecord;
}

async function carryCommits(
  git: Git,
  { from, onto, tips }: { from: string; onto: string; tips: readonly string[] },
): Promise<CarriedCommits> {
  const listed = await git.ok(['rev-list', '--reverse', '--topo-order', ...tips, `^${from}`]);
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
    // If its first parent is the same as ever, so is what it says about that.
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
  // Git merges commits and finds their base itself; naming one needs a newer git than we ask for.
  const commit = (tree: string, parents: readonly string[]) =>
    writeCommit(git, { tree, parents, lines: stampLines, message: '' });
  const root = await commit(base, []);
  const [one, other] = await Promise.all([commit(ours, [root]), commit(theirs, [root])]);
  const merged = await mergeTrees(git, one, other);
  if (merged.kind === 'clean') return merged.tree;
  const solved = await solvedAsBefore(git, merged);
  if (solved !== undefined) return solved;
  throw new CarryFailed(
    `${subject} conflicts with the other base: ${merged.files.map(printable).join(', ')}`,
  );
}

/** The tree, if all that conflicts are files in which the same conflict lay when it was solved by the session. */
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

/** Two texts in which the same conflict is laid out, of commits that differ in nothing but their ids. */
export const isSameConflict = (a: string, b: string): boolean =>
  isMarked.test(a) && unnamed(a) === unnamed(b);

/** As they are laid out for whoever solves them. */
const isMarked = /^>>>>>>> [0-9a-f]{10} \(/m;

const unnamed = (text: string): string => text.replaceAll(/^>>>>>>> [0-9a-f]{10} \(/gm, '>>>>>>> (');
