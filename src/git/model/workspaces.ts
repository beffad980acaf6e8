import { RepriseError } from '../../core/errors.ts';
import type { PreparedWorkspace, WorkspaceOrder } from '../../engine/work/workspace-effects.ts';
import { parkAll, parkHead } from '../../testing/explore/model/parking.ts';
import { branchPrefix, isBranchName } from '../names.ts';
import type { BranchFate, KeptBecause } from '../unlanded.ts';
import type { Removal } from '../workspace/remove.ts';
import { branchRef, type Model, type Worktree } from './repository.ts';

/** Like `resolveBase`. */
export function resolveBase(model: Model, name: string): string {
  if (/^[0-9a-f]{40}$/.test(name)) return name;
  const root = [...model.worktrees.values()].find(({ label }) => !label);
  const commit = name === 'HEAD' ? root && model.headOf(root) : (model.tip(name) ?? model.refs.get(name));
  if (commit !== undefined) return commit;
  throw failed(
    `${JSON.stringify(name)} is no commit to begin from`,
    'name a branch, a tag or a commit; git branch --all lists the branches',
  );
}

/** Like `createWorkspace`. */
export function createWorkspace(
  model: Model,
  { runId, path, branch, ...order }: WorkspaceOrder,
): PreparedWorkspace {
  if (!isBranchName(branch)) throw failed(`${JSON.stringify(branch)} cannot be the name of a branch`);
  const base = resolveBase(model, order.base);
  const there = model.worktrees.get(path);
  if (there) {
    if (!there.label)
      throw failed(
        `${path} is there already, and is not a workspace that Reprise made`,
        'move it away, or remove it if nothing in it is needed',
      );
    if (there.label.branch !== branch)
      throw failed(`${path} is the workspace of ${there.label.branch}, not of ${branch}`);
    return { isFound: true, isSetUp: there.isSetUp, wasAlone: true };
  }
  const tip = model.tip(branch);
  const [elsewhere] = model.checkoutsOf(branch);
  if (elsewhere)
    throw failed(
      `cannot make the workspace ${path}: '${branch}' is already checked out at '${elsewhere.path}'`,
    );
  const record = { branch, base, run: runId };
  if (tip === undefined) {
    model.refs.set(branchRef(branch), base);
    model.records.set(branch, record);
  } else if (branch.startsWith(branchPrefix) && !model.records.has(branch)) model.records.set(branch, record);
  const files = model.treeOf(tip ?? base);
  const head = { kind: 'branch', branch } as const;
  model.worktrees.set(path, {
    path,
    head,
    files,
    staged: files,
    isSetUp: false,
    label: { branch, base },
  });
  return { isFound: false, isSetUp: false, wasAlone: true };
}

/** Throws WORKSPACE_FAILED unless Reprise made it. */
export function ownWorkspace(model: Model, path: string): Worktree & { readonly label: { branch: string } } {
  const worktree = model.worktrees.get(path);
  if (worktree?.label) return { ...worktree, label: worktree.label };
  throw failed(`${path} is not a workspace that Reprise made`, 'make it first');
}

/** Like `resetWorkspace`: back to a commit, on its branch. Marks of other kinds stay. */
export function resetWorkspace(
  model: Model,
  { path, commit }: { readonly path: string; readonly commit: string },
): void {
  const worktree = ownWorkspace(model, path);
  const { branch } = worktree.label;
  if (!model.objects.commitIfThere(commit))
    throw failed(`${JSON.stringify(commit)} is no commit to bring ${path} back to`);
  parkAll(model, worktree, { branch, target: commit });
  model.refs.set(branchRef(branch), commit);
  const files = model.treeOf(commit);
  model.change(worktree, { head: { kind: 'branch', branch }, files, staged: files });
}

export function markSetUp(model: Model, path: string, isSetUp: boolean): void {
  const worktree = model.worktrees.get(path);
  if (worktree) model.change(worktree, { isSetUp });
}

/** Like `removeWorkspace`. */
export function removeWorkspace(
  model: Model,
  { path, branch }: { readonly path: string; readonly branch?: string | undefined },
): Removal {
  const worktree = model.worktrees.get(path);
  if (!worktree) {
    const fate = branch === undefined ? undefined : tidyBranch(model, branch);
    return { kind: 'removed', branch: fate, parked: undefined };
  }
  const { label, head } = worktree;
  if (!label) throw failed(`${path} is not a workspace that Reprise made`);
  const files = model.uncommitted(worktree);
  if (files.length > 0) return { kind: 'uncommitted-changes', files };
  const parked = head.kind === 'commit' ? parkHead(model, label.branch, head.commit) : undefined;
  model.worktrees.delete(path);
  return { kind: 'removed', branch: tidyBranch(model, label.branch), parked };
}

function tidyBranch(model: Model, branch: string): BranchFate {
  const tip = model.tip(branch);
  const record = model.records.get(branch);
  if (tip === undefined) {
    model.records.delete(branch);
    return { kind: 'gone', branch };
  }
  const commits = unlandedCommits(model, branch, tip);
  const kept = (why: KeptBecause): BranchFate => ({ kind: 'kept', branch, tip, commits, why });
  if (!record) return kept('not made by Reprise');
  if (commits > 0) return kept('unlanded commits');
  if (model.checkoutsOf(branch).length > 0) return kept('checked out');
  model.refs.delete(branchRef(branch));
  model.records.delete(branch);
  return { kind: 'deleted', branch, tip };
}

/** What was landed, and so became other commits, does not count. */
function unlandedCommits(model: Model, branch: string, tip: string): number {
  const count = model.commitsNowhereElse(tip, branch);
  const landed = model.records.get(branch)?.landed;
  if (count === 0 || landed?.tip !== tip) return count;
  return model.commitsNowhereElse(landed.commit, branch) === 0 ? 0 : count;
}

const failed = (message: string, hint?: string): RepriseError =>
  new RepriseError('WORKSPACE_FAILED', message, hint === undefined ? {} : { hint });
