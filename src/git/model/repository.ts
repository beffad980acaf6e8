import type { Owner } from '../../store/index.ts';
import type { ProgressMark, ResolutionProgress } from '../conflict/progress.ts';
import type { Branches } from '../refs.ts';
import type { BranchRecord } from '../workspace/branch-records.ts';
import { History, TreeMerger } from './history.ts';
import { Objects } from './objects.ts';
import { Trees } from './trees.ts';

/** HEAD of a worktree. */
export type ModelHead =
  | { readonly kind: 'branch'; readonly branch: string }
  | { readonly kind: 'commit'; readonly commit: string };

/** Worktree with its files. */
export interface ModelWorktree {
  readonly path: string;
  /** Label of a workspace that Reprise made. Absent in the user's own checkout. */
  readonly label?: { readonly branch: string; readonly base: string } | undefined;
  readonly head: ModelHead;
  /** Tree of all files, committed or not. */
  readonly files: string;
  /** Tree of the index. */
  readonly staged: string;
  readonly isSetUp: boolean;
  /** Progress of a conflict resolution in the worktree. */
  readonly mark?: ProgressMark<ResolutionProgress> | undefined;
}

/** Holder of the landing lock. */
interface ModelLockHolder {
  readonly owner: Owner;
  readonly token: number;
}

/** Repository with its workspaces and locks, as data. The operations on it are in the other modules of this folder. */
export class Model {
  /** Immutable objects, shared by all clones. */
  readonly objects: Objects;
  readonly trees: Trees;
  readonly merging: TreeMerger;
  readonly history: History;
  /** Commits by the full name of their ref, such as `refs/heads/main`. */
  readonly refs: Map<string, string>;
  readonly worktrees: Map<string, ModelWorktree>;
  /** Records of the branches that Reprise made, by branch. */
  readonly records: Map<string, BranchRecord>;
  readonly ports: Map<string, { readonly first: number; readonly size: number }>;
  /** State of the landing lock. The last token stays after the lock is released. */
  landing: { readonly token: number; readonly holder: ModelLockHolder | undefined };
  /** Commits that were pushed to a remote. */
  readonly pushed: Map<string, string>;

  constructor(from?: Model) {
    this.objects = from?.objects ?? new Objects();
    this.trees = from?.trees ?? new Trees(this.objects);
    this.merging = from?.merging ?? new TreeMerger(this.objects, this.trees);
    this.history = from?.history ?? new History(this.objects, this.merging);
    this.refs = new Map(from?.refs);
    this.worktrees = new Map(from?.worktrees);
    this.records = new Map(from?.records);
    this.ports = new Map(from?.ports);
    this.landing = from?.landing ?? { token: 0, holder: undefined };
    this.pushed = new Map(from?.pushed);
  }

  /** Returns an independent copy. Its cost is proportional to the number of refs and worktrees. */
  clone(): Model {
    return new Model(this);
  }

  tip(branch: string): string | undefined {
    return this.refs.get(branchRef(branch));
  }

  /** Returns the commit that is checked out. */
  headOf({ head }: ModelWorktree): string | undefined {
    return head.kind === 'commit' ? head.commit : this.tip(head.branch);
  }

  treeOf(commit: string): string {
    return this.objects.commit(commit).tree;
  }

  /** Returns the files that differ from the commit that is checked out. */
  uncommitted(worktree: ModelWorktree): readonly string[] {
    const head = this.headOf(worktree);
    return this.trees.changedPaths(
      head === undefined ? this.objects.emptyTree : this.treeOf(head),
      worktree.files,
    );
  }

  change(worktree: ModelWorktree, change: Partial<ModelWorktree>): ModelWorktree {
    const changed = { ...worktree, ...change };
    this.worktrees.set(worktree.path, changed);
    return changed;
  }

  /** Returns the worktrees that have the branch checked out. */
  checkoutsOf(branch: string): readonly ModelWorktree[] {
    return [...this.worktrees.values()].filter(
      ({ head }) => head.kind === 'branch' && head.branch === branch,
    );
  }

  /** Returns the worktree that contains the folder. */
  worktreeAt(folder: string): ModelWorktree | undefined {
    let found: ModelWorktree | undefined;
    for (const worktree of this.worktrees.values()) {
      const isInside = folder === worktree.path || folder.startsWith(`${worktree.path}/`);
      if (isInside && worktree.path.length > (found?.path.length ?? -1)) found = worktree;
    }
    return found;
  }

  /** Counts the commits of a tip that no branch, tag or remote branch other than `except` has. */
  commitsNowhereElse(tip: string, except?: string): number {
    const others = [...this.refs].filter(
      ([ref]) => /^refs\/(heads|tags|remotes)\//.test(ref) && ref !== (except && branchRef(except)),
    );
    return this.history.commitsOf(
      [tip],
      others.map(([, commit]) => commit),
    ).length;
  }
}

export const branchRef = (branch: string): string => `refs/heads/${branch}`;

const firstPort = 20_000;
const portsEach = 10;

/** Assigns the lowest free ports to the key, or the ports that it had before. */
export function takePorts(
  model: Model,
  { key, before }: { readonly key: string; readonly before?: { first: number; size: number } | undefined },
): { readonly first: number; readonly size: number } {
  const taken = new Set([...model.ports].flatMap(([other, { first }]) => (other === key ? [] : first)));
  let first = before?.first ?? firstPort;
  while (!before && taken.has(first)) first += portsEach;
  const range = { first, size: before?.size ?? portsEach };
  model.ports.set(key, range);
  return range;
}

const mostBytes = 1024 * 1024;

/** Returns a reader for the branches of a model. */
export const branchesIn = (model: Model): Branches => ({
  tip: async branch => model.tip(branch) ?? null,
  tipNow: branch => model.tip(branch) ?? null,
  filesAt: async ({ commit, folder }) =>
    model.trees
      .filesIn(model.treeOf(commit), folder)
      .filter(({ entry: { mode } }) => mode === '100644' || mode === '100755')
      .map(({ path, entry: { id } }) => {
        const bytes = model.objects.bytes(id).length;
        return { path, blob: id, bytes, text: bytes > mostBytes ? undefined : model.objects.text(id) };
      }),
});
