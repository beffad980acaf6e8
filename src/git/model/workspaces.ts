import { type EventOf, RepriseError, toEpochMs } from '../../core/index.ts';
import { branchPrefix, committer, isBranchName, safeSegment, shellWord } from '../names.ts';
import type { PreparedWorkspace, WorkspaceOrder } from '../orders.ts';
import { type ParkedRef, parkedBranch, parkedRef } from '../workspace/branch-records.ts';
import type { BranchFate, KeptBecause, ParkedCommits, Removal } from '../workspace/remove.ts';
import type { SaveRequest, WorkFolder } from '../workspace/save.ts';
import { branchRef, type Model, type ModelWorktree } from './repository.ts';
import type { FileDifference } from './trees.ts';

/** In-memory `resolveBase`. */
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

/** In-memory `createWorkspace`. */
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
        `${path} already exists, and is not a workspace that Reprise made`,
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

/** Returns a workspace that Reprise made. Throws WORKSPACE_FAILED for any other folder. */
export function ownWorkspace(
  model: Model,
  path: string,
): ModelWorktree & { readonly label: { branch: string } } {
  const worktree = model.worktrees.get(path);
  if (worktree?.label) return { ...worktree, label: worktree.label };
  throw failed(`${path} is not a workspace that Reprise made`, 'make it first');
}

/** In-memory `resetWorkspace`: resets the branch of the workspace to a commit. Other marks of the workspace stay. */
export function resetWorkspace(
  model: Model,
  { path, commit }: { readonly path: string; readonly commit: string },
): void {
  const worktree = ownWorkspace(model, path);
  const { branch } = worktree.label;
  if (!model.objects.commitIfThere(commit))
    throw failed(`${JSON.stringify(commit)} is not a commit to reset ${path} to`);
  parkAll(model, worktree, { branch, target: commit });
  model.refs.set(branchRef(branch), commit);
  const files = model.treeOf(commit);
  model.change(worktree, { head: { kind: 'branch', branch }, files, staged: files });
}

export function markSetUp(model: Model, path: string, isSetUp: boolean): void {
  const worktree = model.worktrees.get(path);
  if (worktree) model.change(worktree, { isSetUp });
}

/** In-memory `removeWorkspace`. */
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

/** Counts the commits that exist on no other branch. Commits that landed as rebased copies do not count. */
function unlandedCommits(model: Model, branch: string, tip: string): number {
  const count = model.commitsNowhereElse(tip, branch);
  const landed = model.records.get(branch)?.landed;
  if (count === 0 || landed?.tip !== tip) return count;
  return model.commitsNowhereElse(landed.commit, branch) === 0 ? 0 : count;
}

const failed = (message: string, hint?: string): RepriseError =>
  new RepriseError('WORKSPACE_FAILED', message, hint === undefined ? {} : { hint });

/** In-memory `saveWork`. */
export function saveWork(model: Model, request: SaveRequest): EventOf<'workspace.saved'>['data'] {
  const { path, branch, base } = request;
  const worktree = thereAt(model, path);
  const commit = commitAll(model, worktree, request);
  const { head } = worktree;
  if (head.kind === 'commit' || head.branch !== branch) advanceBranch(model, { path, branch, commit });
  if (commit === base) return { commit, commits: 0, files: 0, insertions: 0, deletions: 0 };
  const [parent, ...others] = model.objects.commit(commit).parents;
  const isOne = parent === base && others.length === 0;
  return {
    commit,
    commits: isOne ? 1 : model.history.commitsOf([commit], [base]).length,
    ...model.trees.counts(model.treeOf(base), model.treeOf(commit)),
  };
}

/** Returns the worktree at the path. Throws WORKSPACE_FAILED if it was removed. */
export function thereAt(model: Model, path: string): ModelWorktree {
  const worktree = model.worktrees.get(path);
  if (worktree) return worktree;
  throw new RepriseError('WORKSPACE_FAILED', `the workspace ${path} was removed while the step was running`, {
    hint: 'what was committed in it is on its branch; find out what removed the folder, then resume the run',
  });
}

function commitAll(
  model: Model,
  worktree: ModelWorktree,
  { branch, message, at }: Pick<SaveRequest, 'branch' | 'message' | 'at'>,
): string {
  const head = model.headOf(worktree);
  if (head !== undefined && model.treeOf(head) === worktree.files) return head;
  const who = `${committer.name} <${committer.email}> ${Math.floor(toEpochMs(at) / 1000)} +0000`;
  const commit = model.objects.addCommit({
    tree: worktree.files,
    parents: head === undefined ? [] : [head],
    lines: [`author ${who}`, `committer ${who}`],
    message: Buffer.from(cleanedUp(message)).toString('latin1'),
  });
  // Another branch that the agent checked out does not move.
  if (head !== undefined && worktree.head.kind === 'branch' && worktree.head.branch !== branch)
    model.change(worktree, { head: { kind: 'commit', commit: head } });
  moveHead(model, worktree, commit);
  return commit;
}

/** Moves HEAD to a commit of all files, which leaves everything staged. */
function moveHead(model: Model, worktree: ModelWorktree, commit: string): void {
  const { head, files } = worktree;
  if (head.kind === 'branch') model.refs.set(branchRef(head.branch), commit);
  model.change(worktree, { staged: files, ...(head.kind === 'commit' ? { head: { ...head, commit } } : {}) });
}

/** Cleans up a message as `git commit --cleanup=whitespace` does. */
function cleanedUp(message: string): string {
  const lines = message
    .split('\n')
    .map(line => line.trimEnd())
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .replace(/^\n+|\n+$/g, '');
  return lines === '' ? '' : `${lines}\n`;
}

/**
 * Moves the branch of the workspace to a commit that the agent made on another branch or on a detached HEAD. Throws
 * WORKSPACE_FAILED if the branch would lose commits.
 */
function advanceBranch(
  model: Model,
  { path, branch, commit }: { readonly path: string; readonly branch: string; readonly commit: string },
): void {
  const tip = model.tip(branch);
  if (tip !== undefined && !model.history.isAncestor(tip, commit)) {
    throw new RepriseError(
      'WORKSPACE_FAILED',
      `the work in ${path} is not on ${branch}, which has other commits`,
      {
        hint: `bring both together: cd ${JSON.stringify(path)} && git switch ${branch}, and merge what is missing`,
      },
    );
  }
  model.refs.set(branchRef(branch), commit);
  model.change(thereAt(model, path), { head: { kind: 'branch', branch } });
}

/** In-memory `changesIn`. */
export function changesIn(
  model: Model,
  { path, base, ignoring }: WorkFolder & { readonly ignoring: readonly string[] },
): readonly string[] {
  const worktree = thereAt(model, path);
  const head = model.headOf(worktree);
  const committed =
    head === undefined || head === base
      ? []
      : model.trees.changedPaths(model.treeOf(base), model.treeOf(head));
  const named = head !== base && committed.length === 0 ? ['a commit without changes'] : committed;
  const ignored = new Set(ignoring);
  return [...new Set([...named, ...model.uncommitted(worktree)])].filter(file => !ignored.has(file));
}

/** Returns the changes for people and judges to read, as whole files before and after. */
export function patchOf(
  model: Model,
  { path, base, limit }: { readonly path: string; readonly base: string; readonly limit: number },
): string {
  const head = model.headOf(thereAt(model, path)) ?? base;
  const text = textOf(model, model.trees.differences(model.treeOf(base), model.treeOf(head)));
  return text.length > limit ? `${text.slice(0, limit)}\n… (truncated)` : text;
}

/** Prints differences for people to read. */
export const textOf = (model: Model, differences: readonly FileDifference[]): string =>
  differences
    .map(({ path: file, before, after }) => {
      const side = (sign: string, id: string | undefined) =>
        id === undefined ? '' : model.objects.text(id).replace(/^/gm, sign);
      return `diff --git ${shellWord(`a/${file}`)} ${shellWord(`b/${file}`)}\n${side('-', before?.id)}\n${side('+', after?.id)}\n`;
    })
    .join('');

/** In-memory `parkAll`: parks the commits and changes that would be lost if the workspace moved to the target. */
export function parkAll(
  model: Model,
  worktree: ModelWorktree,
  { branch, target }: { readonly branch: string; readonly target: string },
): readonly ParkedRef[] {
  const head = model.headOf(worktree);
  const tip = model.tip(branch);
  const isChanged = head !== undefined && model.uncommitted(worktree).length > 0;
  const leftOver = isChanged ? snapshot(model, worktree, head) : undefined;
  const parked: ParkedRef[] = [];
  for (const commit of [leftOver ?? head, tip === head ? undefined : tip]) {
    if (commit === undefined || model.history.isAncestor(commit, target)) continue;
    const commits = model.commitsNowhereElse(commit, branch);
    if (commits === 0) continue;
    const ref = parkedRef(branch, commit);
    model.refs.set(ref, commit);
    parked.push({ ref, commit, commits });
  }
  return parked;
}

/** Commits all files with the date of HEAD, so that the same work always gives the same commit. */
function snapshot(model: Model, { files }: ModelWorktree, head: string): string {
  const seconds = / (\d+) [+-]\d{4}$/.exec(
    model.objects.commit(head).lines.find(line => line.startsWith('committer ')) ?? '',
  )?.[1];
  const who = `reprise <reprise@localhost> ${seconds ?? 0} +0000`;
  return model.objects.addCommit({
    tree: files,
    parents: [head],
    lines: [`author ${who}`, `committer ${who}`],
    message: 'Uncommitted work of an attempt that was given up\n',
  });
}

/** Parks the commits of a detached HEAD that no branch has. */
function parkHead(model: Model, name: string, commit: string): ParkedCommits | undefined {
  const commits = model.commitsNowhereElse(commit);
  if (commits === 0) return undefined;
  const branch = parkedBranch(name, commit);
  model.refs.set(branchRef(branch), commit);
  return { branch, commit, commits };
}

/** In-memory `parkOnBranch` and `deliverOnBranch`. */
export function keepOnBranch(
  model: Model,
  folder: 'parked' | 'task',
  { task, commit }: { readonly task: string; readonly commit: string },
): string {
  const plain = `${branchPrefix}${folder}/${safeSegment(task)}`;
  for (let number = 1; ; number++) {
    const branch = number === 1 ? plain : `${plain}-${number}`;
    const tip = model.tip(branch);
    if (tip === undefined) model.refs.set(branchRef(branch), model.objects.commit(commit).id);
    if (tip === undefined || tip === commit) return branch;
  }
}
