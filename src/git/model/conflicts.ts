import { RepriseError, type Timestamp, toEpochMs } from '../../core/index.ts';
import { describeConflict, hasLabels, hasMarkers } from '../conflict/lay-out.ts';
import {
  type Finishing,
  keyOf,
  labelsOf,
  type Resolution,
  type ResolutionDraft,
  type ResolvedConflict,
} from '../conflict/progress.ts';
import {
  type BeginResult,
  type ContinueResult,
  movedAway,
  type ResolutionRefused,
} from '../conflict/resolve.ts';
import { committer, printable, shellWord } from '../names.ts';
import { type ParkedRef, parkedRef } from '../workspace/branch-records.ts';
import { branchRef, type Model, type ModelWorktree } from './repository.ts';
import { ownWorkspace, parkAll, resetWorkspace } from './workspaces.ts';

export interface LayOutOrder {
  readonly path: string;
  readonly branch: string;
  readonly onto: string;
  readonly ontoName: string;
}

/** In-memory `beginResolution`. */
export function layOut(model: Model, { path, branch, onto, ontoName }: LayOutOrder): BeginResult {
  const worktree = modelWorktreeAt(model, path, branch);
  const tip = model.tip(branch);
  if (tip === undefined) throw new RepriseError('CANNOT_LAND', `there is no branch ${branch}`);
  const known = worktree.mark?.value;
  const isAway = worktree.head.kind === 'commit' || worktree.head.branch !== branch;
  if (known?.kind === 'laid-out' && isAway && known.resolution.tip === tip && known.resolution.onto === onto)
    return { kind: 'conflict', resolution: known.resolution };
  const conflict = model.history.replay({ onto, tip });
  if (conflict.kind !== 'conflict') return { kind: 'fits' };
  const parked = parkAll(model, worktree, { branch, target: tip });
  const draft = { branch, tip, onto, ontoName, conflict, dropped: [], parked };
  return { kind: 'conflict', resolution: layOutDraft(model, worktree, { draft, after: '' }) };
}

function modelWorktreeAt(model: Model, path: string, branch: string): ModelWorktree {
  const worktree = ownWorkspace(model, path);
  if (worktree.label.branch === branch) return worktree;
  throw new RepriseError(
    'WORKSPACE_FAILED',
    `${path} is the workspace of ${worktree.label.branch}, not of ${branch}`,
  );
}

function layOutDraft(
  model: Model,
  worktree: ModelWorktree,
  { draft, after }: { readonly draft: ResolutionDraft; readonly after: string },
): Resolution {
  const { conflict, ontoName: _, ...begun } = draft;
  const { at, commit, subject, isWhole, rest, tree, stages } = conflict;
  const labels = labelsOf(draft);
  const { trees, merging } = model;
  const merged = merging.merge({
    base: baseOf(model, commit),
    ours: model.treeOf(at),
    theirs: model.treeOf(commit),
  });
  if (merged.kind !== 'conflict') throw new RepriseError('INTERNAL', `${commit} fits onto ${at} after all`);
  const marked = new Set(merged.clashes.filter(clash => merging.isMarked(clash)).map(({ path }) => path));
  const files = conflict.files.map(path =>
    describeConflict(path, { stages, isMarked: marked.has(path), onto: labels.ours }),
  );
  const resolution = { ...begun, at, commit, subject, isWhole, rest, tree, files, labels };
  model.change(worktree, {
    head: { kind: 'commit', commit: at },
    files: withUntracked(model, worktree, merging.marked(merged, labels)),
    staged: trees.withAll(
      tree,
      conflict.files.map(path => [path, trees.fileAt(model.treeOf(at), path)] as const),
    ),
    mark: { after, value: { kind: 'laid-out', resolution } },
  });
  return resolution;
}

function baseOf(model: Model, commit: string): string {
  const [parent] = model.objects.commit(commit).parents;
  return parent === undefined ? model.objects.emptyTree : model.treeOf(parent);
}

/** Returns the tree with the untracked files of the worktree whose paths it does not have. */
function withUntracked(model: Model, { staged, files }: ModelWorktree, tree: string): string {
  const untracked = model.trees
    .differences(staged, files)
    .filter(({ path, before }) => before === undefined && !model.trees.fileAt(tree, path));
  return model.trees.withAll(
    tree,
    untracked.map(({ path, after }) => [path, after] as const),
  );
}

export interface SolutionOrder {
  readonly path: string;
  readonly resolution: Resolution;
  readonly at: Timestamp;
}

/** In-memory `continueResolution`. */
export function takeSolution(model: Model, order: SolutionOrder): ContinueResult {
  const { path, resolution } = order;
  const worktree = modelWorktreeAt(model, path, resolution.branch);
  const { mark } = worktree;
  if (mark?.after === keyOf(resolution)) {
    if (mark.value.kind === 'finishing') return finish(model, worktree, mark.value);
    if (mark.value.kind === 'laid-out') return { kind: 'conflict', resolution: mark.value.resolution };
  }
  const context = modelCommitContextOf(model, worktree, resolution);
  return 'kind' in context ? context : continueWith(model, worktree, { ...order, ...context });
}

interface ModelCommitContext {
  readonly parent: string;
  readonly from: string;
}

function modelCommitContextOf(
  model: Model,
  worktree: ModelWorktree,
  resolution: Resolution,
): ModelCommitContext | ContinueResult {
  const { branch, tip, onto, at, labels } = resolution;
  const files = resolution.files.map(file => file.path);
  const head = model.headOf(worktree);
  const from = model.tip(branch);
  if (from === undefined || (from !== tip && from !== head)) return movedAway(branch, from);
  if (head === undefined || !model.history.isAncestor(onto, head)) {
    const back = `git checkout --detach ${at.slice(0, 10)}`;
    const why = `HEAD no longer contains the commits of ${labels.ours}; to go back: ${back}`;
    return { kind: 'unsolved', files, why };
  }
  const unsolved = files.filter(file => isUnsolved(model, worktree, { file, resolution }));
  if (unsolved.length > 0) {
    const why = `conflict markers are left in ${unsolved.map(printable).join(', ')}`;
    return { kind: 'unsolved', files: unsolved, why };
  }
  return from === tip ? { parent: at, from } : { parent: head, from };
}

function isUnsolved(
  model: Model,
  { files }: ModelWorktree,
  { file, resolution: { at, commit, labels } }: { readonly file: string; readonly resolution: Resolution },
): boolean {
  const textIn = (tree: string): string | undefined => {
    const entry = model.trees.fileAt(tree, file);
    return entry && model.objects.bytes(entry.id).toString('latin1');
  };
  const text = textIn(files);
  if (text === undefined || !hasMarkers(text)) return false;
  const isOwn = [at, commit].some(side => hasMarkers(textIn(model.treeOf(side)) ?? ''));
  return hasLabels(text, labels) || !isOwn;
}

function continueWith(
  model: Model,
  worktree: ModelWorktree,
  { resolution, at, parent, from }: SolutionOrder & ModelCommitContext,
): ContinueResult {
  const { branch, onto, rest, labels } = resolution;
  const isChange = worktree.files !== model.treeOf(parent);
  const solved = isChange ? commitSolution(model, worktree, { resolution, at, parent }) : parent;
  const isDropped = !isChange && parent === resolution.at;
  const dropped = isDropped ? [...resolution.dropped, resolution.subject] : resolution.dropped;
  const isKept = resolution.parked.some(each => each.commit === resolution.tip);
  const isTipLost = !isKept && (isDropped || from !== resolution.tip);
  const parked = [...resolution.parked, ...(isTipLost ? [parkTip(model, resolution)] : [])];
  const after = keyOf(resolution);
  const replayed = model.history.pickAll({ onto: solved, series: rest });
  if (replayed.kind === 'conflict') {
    const draft = { branch, tip: from, onto, ontoName: labels.ours, conflict: replayed, dropped, parked };
    return { kind: 'conflict', resolution: layOutDraft(model, worktree, { draft, after }) };
  }
  const commit = replayed.kind === 'commit' ? replayed.commit : solved;
  const resolved = { kind: 'resolved', branch, commit, dropped, parked } as const;
  const finishing = { kind: 'finishing', from, resolved } as const;
  return finish(model, model.change(worktree, { mark: { after, value: finishing } }), finishing);
}

function commitSolution(
  model: Model,
  { files }: ModelWorktree,
  { resolution, at, parent }: Pick<SolutionOrder, 'resolution' | 'at'> & Pick<ModelCommitContext, 'parent'>,
): string {
  const { lines, message } = model.objects.commit(resolution.commit);
  const { name, email } = committer;
  const stamp = `committer ${name} <${email}> ${Math.floor(toEpochMs(at) / 1000)} +0000`;
  return model.objects.addCommit({
    tree: files,
    parents: [parent],
    lines: lines.map(line => (line.startsWith('committer ') ? stamp : line)),
    message,
  });
}

function parkTip(model: Model, { branch, tip, onto }: Resolution): ParkedRef {
  const ref = parkedRef(branch, tip);
  model.refs.set(ref, tip);
  return { ref, commit: tip, commits: model.history.commitsOf([tip], [onto]).length };
}

/** In-memory `finishResolution`. */
function finish(
  model: Model,
  worktree: ModelWorktree,
  { from, resolved }: Finishing,
): ResolvedConflict | ResolutionRefused {
  const { branch, commit } = resolved;
  const current = model.tip(branch);
  if (current !== from && current !== commit) {
    const refusal = movedAway(branch, current);
    const kept = parkedRef(branch, commit);
    model.refs.set(kept, commit);
    return { ...refusal, hint: `${refusal.hint}\nthe resolution is kept: git log ${shellWord(kept)}` };
  }
  if (current === commit && worktree.head.kind === 'branch' && worktree.head.branch === branch)
    return resolved;
  model.refs.set(branchRef(branch), commit);
  const files = model.treeOf(commit);
  model.change(worktree, { head: { kind: 'branch', branch }, files, staged: files });
  return resolved;
}

/** In-memory `abortResolution`. */
export function giveUp(
  model: Model,
  { path, resolution }: { readonly path: string; readonly resolution: Pick<Resolution, 'branch' | 'tip'> },
): void {
  const worktree = modelWorktreeAt(model, path, resolution.branch);
  const current = model.tip(resolution.branch);
  const commit = current === undefined || current === model.headOf(worktree) ? resolution.tip : current;
  resetWorkspace(model, { path, commit });
  model.change(ownWorkspace(model, path), { mark: undefined });
}
