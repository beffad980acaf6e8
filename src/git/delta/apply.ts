import { type CommitRecord, readCommits, stampLines, writeCommit } from '../commit-records.ts';
import { type Merged, mergeTrees, type Stage } from '../commits.ts';
import type { Git } from '../git.ts';
import { withSideIndex } from '../side-index.ts';
import { printable } from '../words.ts';
import { isSameConflict } from './same-conflict.ts';
import { type Carrying, carryRest, newStashes, type WorktreeState } from './state.ts';

/** The state that a worktree should come to, or why there is none. */
export type Carried =
  | { readonly kind: 'carried'; readonly state: WorktreeState }
  | { readonly kind: 'inconclusive'; readonly why: string };

/**
 * What a session would have left behind had it begun with another commit and other files: each of its commits is merged
 * onto what its parents have become, then its files and its index are. Only objects are written.
 */
export async function threeWay(git: Git, states: Carrying): Promise<Carried> {
  try {
    return { kind: 'carried', state: await carry(git, states) };
  } catch (error) {
    if (error instanceof CannotCarry) return { kind: 'inconclusive', why: error.message };
    throw error;
  }
}

class CannotCarry extends Error {}

async function carry(git: Git, states: Carrying): Promise<WorktreeState> {
  const { before, after, current } = states;
  const from = before.head.commit;
  const onto = current.head.commit;
  const tip = after.head.commit;
  if (from === null || onto === null || tip === null)
    throw new CannotCarry('the session, or what it should be carried over to, has no commit');
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
    throw new CannotCarry(
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
    if (record === undefined) throw new CannotCarry(`commit ${id} is not in the repository`);
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

interface Trees {
  readonly base: string;
  readonly ours: string;
  readonly theirs: string;
}

async function merge(git: Git, { base, ours, theirs }: Trees, subject: string): Promise<string> {
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
  throw new CannotCarry(
    `${subject} conflicts with the other base: ${merged.files.map(printable).join(', ')}`,
  );
}

/** The tree, if all that conflicts are files in which the same conflict lay when it was solved by the session. */
async function solvedAsBefore(
  git: Git,
  { tree, files, stages }: Extract<Merged, { kind: 'conflict' }>,
): Promise<string | undefined> {
  const solutions: Stage[] = [];
  for (const file of files) {
    const [base, ours, theirs] = ([1, 2, 3] as const).map(stage =>
      stages.find(each => each.path === file && each.stage === stage),
    );
    if (!base || !ours || !theirs) return undefined;
    const [before, now] = await Promise.all([base, ours].map(({ id }) => git.ok(['cat-file', 'blob', id])));
    if (!isSameConflict(before ?? '', now ?? '')) return undefined;
    solutions.push(theirs);
  }
  return withSideIndex(git, async side => {
    await side.ok(['read-tree', tree]);
    for (const { mode, id, path } of solutions)
      await side.ok(['update-index', '--add', '--cacheinfo', `${mode},${id},${path}`]);
    return side.line(['write-tree']);
  });
}
