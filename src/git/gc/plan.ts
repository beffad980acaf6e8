import { printable } from '../names.ts';

/** Everything in a repository that Reprise made. */
export interface GcFacts {
  readonly workspaces: readonly WorkspaceFact[];
  readonly branches: readonly BranchFact[];
  /** Checkouts for the verification of landings. */
  readonly scratch: readonly { readonly path: string; readonly bytes: number }[];
  /** Whether a landing is in progress, which uses its checkout. */
  readonly landing: boolean;
  /** Private git folders of worktrees whose creation was interrupted. */
  readonly unborn: readonly string[];
}

export interface WorkspaceFact {
  readonly path: string;
  readonly branch: string;
  readonly run: string | undefined;
  /** Whether its creation was interrupted, or its folder was deleted. */
  readonly empty: boolean;
  readonly uncommitted: readonly string[];
  /** Size of the folder on disk. */
  readonly bytes: number;
}

export interface BranchFact {
  readonly branch: string;
  readonly run: string | undefined;
  /** Tip of the branch. `undefined` if the branch was deleted. */
  readonly tip: string | undefined;
  /** Number of commits that are neither landed nor on another branch. */
  readonly unlanded: number;
  /** Path of a worktree, not made by Reprise, that has the branch checked out. */
  readonly checkedOut: string | undefined;
}

/** An `active` run has not ended, and still needs its workspaces and branches. */
export type RunActivity = 'active' | 'ended';

export type GcAction =
  | {
      readonly kind: 'remove-workspace';
      readonly path: string;
      readonly branch: string;
      readonly bytes: number;
    }
  | { readonly kind: 'delete-branch'; readonly branch: string }
  | { readonly kind: 'remove-scratch'; readonly path: string; readonly bytes: number }
  | { readonly kind: 'remove-unborn'; readonly path: string };

export interface GcPlan {
  readonly remove: readonly GcAction[];
  /** Branches that stay because their commits are nowhere else. */
  readonly park: readonly ParkedBranch[];
  readonly leave: readonly KeptItem[];
}

export interface ParkedBranch {
  readonly branch: string;
  /** Tip of the branch. */
  readonly commit: string;
  /** Number of commits that are nowhere else. */
  readonly commits: number;
}

export interface KeptItem {
  readonly kind: 'workspace' | 'branch' | 'scratch';
  /** Path, or name of a branch. */
  readonly what: string;
  readonly why: string;
  /** Size on disk. 0 for a branch. */
  readonly bytes: number;
}

export const bytesToFree = ({ remove }: GcPlan): number =>
  remove.reduce((sum, action) => sum + ('bytes' in action ? action.bytes : 0), 0);

/**
 * Plans the removal of workspaces and branches of ended runs, as long as no work is lost. Items of runs that are not in
 * `runs` are kept, because they may belong to another project.
 */
export function planGc(facts: GcFacts, runs: ReadonlyMap<string, RunActivity>): GcPlan {
  const remove: GcAction[] = [];
  const park: ParkedBranch[] = [];
  const leave: KeptItem[] = [];
  const stays = new Set<string>();

  for (const { path, branch, run, empty, uncommitted, bytes } of facts.workspaces) {
    const why =
      reasonToWait(run, runs) ??
      (uncommitted.length > 0 && !empty ? uncommittedText(uncommitted) : undefined);
    if (why === undefined) remove.push({ kind: 'remove-workspace', path, branch, bytes });
    else {
      leave.push({ kind: 'workspace', what: path, why, bytes });
      stays.add(branch);
    }
  }
  const removed = new Set(remove.map(action => ('branch' in action ? action.branch : '')));
  for (const { branch, run, tip, unlanded, checkedOut } of facts.branches) {
    if (stays.has(branch)) continue;
    const why = reasonToWait(run, runs) ?? (checkedOut && `it is checked out in ${checkedOut}`);
    if (why !== undefined) leave.push({ kind: 'branch', what: branch, why, bytes: 0 });
    else if (tip !== undefined && unlanded > 0) park.push({ branch, commit: tip, commits: unlanded });
    // The removal of a workspace deletes its branch too.
    else if (!removed.has(branch)) remove.push({ kind: 'delete-branch', branch });
  }
  for (const { path, bytes } of facts.scratch) {
    if (facts.landing) leave.push({ kind: 'scratch', what: path, why: 'a landing is in progress', bytes });
    else remove.push({ kind: 'remove-scratch', path, bytes });
  }
  for (const path of facts.unborn) remove.push({ kind: 'remove-unborn', path });
  return { remove, park, leave };
}

function reasonToWait(run: string | undefined, runs: ReadonlyMap<string, RunActivity>): string | undefined {
  const activity = run === undefined ? 'ended' : runs.get(run);
  switch (activity) {
    case 'active':
      return `run ${run} has not ended`;
    case undefined:
      return `run ${run} is unknown`;
    case 'ended':
      return undefined;
  }
}

export const uncommittedText = (files: readonly string[]): string =>
  `it has uncommitted changes: ${files.slice(0, 5).map(printable).join(', ')}${files.length > 5 ? ` and ${files.length - 5} more` : ''}`;
