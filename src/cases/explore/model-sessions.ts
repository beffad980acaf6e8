import { isSameConflict } from '../../git/delta/apply.ts';
import { carryRest, isSameBase, newStashes, type WorktreeState } from '../../git/delta/state.ts';
import type { Clash, ThreeTrees } from '../../git/model/history.ts';
import { branchRef, type Model, type Worktree } from '../../git/model/repository.ts';
import { printable } from '../../git/names.ts';
import type { AppliedMark } from '../replay/serve-session.ts';

/** What a recorded session or script did to its worktree. All that the states name is in the model. */
export interface Deed {
  readonly before: WorktreeState;
  readonly after: WorktreeState;
}

class CannotCarry extends Error {}

/**
 * Does to a worktree what was done to the one of the recording, like `applyDelta`: as it was if the worktree stands as that
 * did, merged by whole files if it does not, and not at all if that cannot be.
 */
export function carryOut(model: Model, folder: string, deed: Deed): Omit<AppliedMark, 'file'> {
  const worktree = model.worktreeAt(folder);
  if (!worktree) return { kind: 'inconclusive', why: `${folder} is in no worktree` };
  const current = stateOf(model, worktree);
  try {
    const wanted = carried(model, { ...deed, current });
    install(model, worktree, wanted);
    return { kind: isSameBase(deed.before, current) ? 'exact' : 'counterfactual' };
  } catch (error) {
    if (error instanceof CannotCarry) return { kind: 'inconclusive', why: error.message };
    throw error;
  }
}

const stateOf = (model: Model, worktree: Worktree): WorktreeState => ({
  head: {
    commit: model.headOf(worktree) ?? null,
    branch: worktree.head.kind === 'branch' ? worktree.head.branch : null,
  },
  tree: worktree.files,
  index: { tree: worktree.staged, intentToAdd: [] },
  stashes: [],
  emptyFolders: [],
  refs: {},
});

interface Carrying extends Deed {
  readonly current: WorktreeState;
}

function carried(model: Model, states: Carrying): WorktreeState {
  const { before, after, current } = states;
  const [from, onto, tip] = [before, current, after].map(({ head }) => head.commit);
  if (from == null || onto == null || tip == null)
    throw new CannotCarry('the session, or what it should be carried over to, has no commit');
  if (newStashes(before, after).length > 0)
    throw new CannotCarry('the session stashed something, which the model of a repository does not have');
  if (!model.history.isAncestor(from, tip))
    throw new CannotCarry(
      `the session left the commit that it began with (${from.slice(0, 12)}) out of its branch, which means nothing on another base`,
    );
  const tips = [tip, ...Object.values(after.refs)].filter(commit => commit !== null);
  const commits = carryCommits(model, { from, onto, tips });
  const rest = carryRest(states, commit => commits.get(commit) ?? commit);
  const trees = new Map([...commits].map(([was, is]) => [model.treeOf(was), model.treeOf(is)]));
  const merged = (part: (state: WorktreeState) => string, subject: string) => {
    // What was committed has become what its commits have, one after another.
    const isCommitted = part(before) === model.treeOf(from) && part(current) === model.treeOf(onto);
    const known = isCommitted ? trees.get(part(after)) : undefined;
    return known ?? merge(model, { base: part(before), ours: part(current), theirs: part(after) }, subject);
  };
  const tree = merged(state => state.tree, 'what it did not commit');
  const isAllStaged = [before, after, current].every(state => state.index.tree === state.tree);
  const staged = isAllStaged ? tree : merged(state => state.index.tree, 'what it staged');
  return { ...rest, tree, index: { tree: staged, intentToAdd: [] } };
}

/** What the commits of the session become on top of another. */
function carryCommits(
  model: Model,
  { from, onto, tips }: { readonly from: string; readonly onto: string; readonly tips: readonly string[] },
): ReadonlyMap<string, string> {
  const commits = new Map([[from, onto]]);
  if (from === onto) return commits;
  for (const commit of model.history.commitsOf(tips, [from])) {
    const parents = commit.parents.map(parent => commits.get(parent) ?? parent);
    if (parents.every((parent, i) => parent === commit.parents[i])) continue;
    const [first] = commit.parents;
    const now = first === undefined ? undefined : commits.get(first);
    const tree =
      first === undefined || now === undefined
        ? commit.tree
        : merge(
            model,
            { base: model.treeOf(first), ours: model.treeOf(now), theirs: commit.tree },
            `commit "${commit.subject}"`,
          );
    commits.set(commit.id, model.objects.addCommit({ ...commit, tree, parents }));
  }
  return commits;
}

function merge(model: Model, trees: ThreeTrees, subject: string): string {
  const merged = model.merging.merge(trees);
  if (merged.kind === 'clean') return merged.tree;
  const { clashes } = merged;
  if (clashes.every(clash => isSolvedAsBefore(model, clash)))
    return model.trees.withAll(
      merged.tree,
      clashes.map(({ path, theirs }) => [path, theirs] as const),
    );
  const files = clashes.map(({ path }) => printable(path)).join(', ');
  throw new CannotCarry(`${subject} conflicts with the other base: ${files}`);
}

/** The same conflict lay in the file when the session solved it. */
const isSolvedAsBefore = ({ objects }: Model, { base, ours, theirs }: Clash): boolean =>
  base !== undefined &&
  ours !== undefined &&
  theirs !== undefined &&
  isSameConflict(objects.text(base.id), objects.text(ours.id));

function install(model: Model, worktree: Worktree, { head, tree, index, refs }: WorktreeState): void {
  for (const [name, value] of Object.entries(refs)) {
    if (value === null) model.refs.delete(name);
    else model.refs.set(name, value);
  }
  const { branch, commit } = head;
  if (branch !== null && commit !== null) model.refs.set(branchRef(branch), commit);
  model.change(worktree, {
    files: tree,
    staged: index.tree,
    head: branch === null ? { kind: 'commit', commit: commit ?? '' } : { kind: 'branch', branch },
  });
}
