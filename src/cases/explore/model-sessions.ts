import {
  carryRest,
  isSameBase,
  isSameConflict,
  newStashes,
  type WorktreeState,
} from '../../git/delta/index.ts';
import { printable } from '../../git/index.ts';
import {
  branchRef,
  type FileClash,
  type Model,
  type ModelWorktree,
  type ThreeTrees,
} from '../../git/model/index.ts';
import type { AppliedMark } from '../replay/serve-session.ts';

/** Worktree states before and after a recorded session or script. The model has all their objects. */
export interface SessionDelta {
  readonly before: WorktreeState;
  readonly after: WorktreeState;
}

class ModelCarryFailed extends Error {}

/**
 * Applies recorded changes to a worktree, like `applyDelta`: unchanged if the worktree is in the recorded state,
 * otherwise merged by whole files. Changes nothing if they cannot be merged.
 */
export function carryOut(model: Model, folder: string, delta: SessionDelta): Omit<AppliedMark, 'file'> {
  const worktree = model.worktreeAt(folder);
  if (!worktree) return { kind: 'inconclusive', why: `${folder} is not a worktree` };
  const current = stateOf(model, worktree);
  try {
    const wanted = carried(model, { ...delta, current });
    install(model, worktree, wanted);
    return { kind: isSameBase(delta.before, current) ? 'exact' : 'counterfactual' };
  } catch (error) {
    if (error instanceof ModelCarryFailed) return { kind: 'inconclusive', why: error.message };
    throw error;
  }
}

const stateOf = (model: Model, worktree: ModelWorktree): WorktreeState => ({
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

interface ModelCarryRequest extends SessionDelta {
  readonly current: WorktreeState;
}

function carried(model: Model, states: ModelCarryRequest): WorktreeState {
  const { before, after, current } = states;
  const [from, onto, tip] = [before, current, after].map(({ head }) => head.commit);
  if (from == null || onto == null || tip == null)
    throw new ModelCarryFailed('the session started, ended or is replayed on a branch without commits');
  if (newStashes(before, after).length > 0)
    throw new ModelCarryFailed('the session created a stash, which the in-memory model does not support');
  if (!model.history.isAncestor(from, tip))
    throw new ModelCarryFailed(
      `the session dropped its base commit (${from.slice(0, 12)}) from the branch, so it cannot be replayed on another base`,
    );
  const tips = [tip, ...Object.values(after.refs)].filter(commit => commit !== null);
  const commits = carryCommits(model, { from, onto, tips });
  const rest = carryRest(states, commit => commits.get(commit) ?? commit);
  const trees = new Map([...commits].map(([was, is]) => [model.treeOf(was), model.treeOf(is)]));
  const merged = (part: (state: WorktreeState) => string, conflict: string) => {
    // A fully committed tree was merged commit by commit above; take the tree of its new commit.
    const isCommitted = part(before) === model.treeOf(from) && part(current) === model.treeOf(onto);
    const known = isCommitted ? trees.get(part(after)) : undefined;
    return known ?? merge(model, { base: part(before), ours: part(current), theirs: part(after) }, conflict);
  };
  const tree = merged(state => state.tree, 'its uncommitted changes conflict');
  const isAllStaged = [before, after, current].every(state => state.index.tree === state.tree);
  const staged = isAllStaged ? tree : merged(state => state.index.tree, 'its staged changes conflict');
  return { ...rest, tree, index: { tree: staged, intentToAdd: [] } };
}

/** Rebases the commits of the session. Maps each recorded commit to its new one. */
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
            `commit "${commit.subject}" conflicts`,
          );
    commits.set(commit.id, model.objects.addCommit({ ...commit, tree, parents }));
  }
  return commits;
}

function merge(model: Model, trees: ThreeTrees, conflict: string): string {
  const merged = model.merging.merge(trees);
  if (merged.kind === 'clean') return merged.tree;
  const { clashes } = merged;
  if (clashes.every(clash => isSolvedAsBefore(model, clash)))
    return model.trees.withAll(
      merged.tree,
      clashes.map(({ path, theirs }) => [path, theirs] as const),
    );
  const files = clashes.map(({ path }) => printable(path)).join(', ');
  throw new ModelCarryFailed(`${conflict} with the other base in ${files}`);
}

/** Whether the recorded session resolved this very conflict. */
const isSolvedAsBefore = ({ objects }: Model, { base, ours, theirs }: FileClash): boolean =>
  base !== undefined &&
  ours !== undefined &&
  theirs !== undefined &&
  isSameConflict(objects.text(base.id), objects.text(ours.id));

function install(model: Model, worktree: ModelWorktree, { head, tree, index, refs }: WorktreeState): void {
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
