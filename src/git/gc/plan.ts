import { printable } from '../names.ts';

/** What there is in a repository of all that Reprise made. */
export interface GcFacts {
  readonly workspaces: readonly WorkspaceFact[];
  readonly branches: readonly BranchFact[];
  /** Folders that a landing left behind. */
  readonly scratch: readonly { readonly path: string; readonly bytes: number }[];
  /** A landing is going on, and its folder is in use. */
  readonly landing: boolean;
  /** Private git folders of worktrees that never came to be. */
  readonly unborn: readonly string[];
}

export interface WorkspaceFact {
  readonly path: string;
  readonly branch: string;
  readonly run: string | undefined;
  /** Nobody has worked in it, or its folder is gone. */
  readonly empty: boolean;
  readonly uncommitted: readonly string[];
  /** That its folder takes on the disk. */
  readonly bytes: number;
}

export interface BranchFact {
  readonly branch: string;
  readonly run: string | undefined;
  /** `undefined` if the branch was deleted. */
  readonly tip: string | undefined;
  /** Commits that are neither landed nor on another branch. */
  readonly unlanded: number;
  /** Where somebody else has checked it out. */
  readonly checkedOut: string | undefined;
}

/** `active`: may go on, so that it still needs what it has. */
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
  /** Branches whose commits are nowhere else: they stay, and are named. */
  readonly park: readonly ParkedBranch[];
  readonly leave: readonly KeptItem[];
}

export interface ParkedBranch {
  readonly branch: string;
  /** The last of them. */
  readonly commit: string;
  readonly commits: number;
}

export interface KeptItem {
  readonly kind: 'workspace' | 'branch' | 'scratch';
  /** A path, or the name of a branch. */
  readonly what: string;
  readonly why: string;
  /** 0 for a branch. */
  readonly bytes: number;
}

export const bytesToFree = ({ remove }: GcPlan): number =>
  remove.reduce((sum, action) => sum + ('bytes' in action ? action.bytes : 0), 0);

/**
 * What can go: workspaces and branches of runs that have ended, if nothing in them would be lost. Runs that are not in
 * the map may belong to somebody else, and are left alone.
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
    // A branch goes with its workspace.
    else if (!removed.has(branch)) remove.push({ kind: 'delete-branch', branch });
  }
  for (const { path, bytes } of facts.scratch) {
    if (facts.landing) leave.push({ kind: 'scratch', what: path, why: 'a landing is going on', bytes });
    else remove.push({ kind: 'remove-scratch', path, bytes });
  }
  for (const path of facts.unborn) remove.push({ kind: 'remove-unborn', path });
  return { remove, park, leave };
}

function reasonToWait(run: string | undefined, runs: ReadonlyMap<string, RunActivity>): string | undefined {
  const activity = run === undefined ? 'ended' : runs.get(run);
  switch (activity) {
    case 'active':
      return `run ${run} may go on`;
    case undefined:
      return `run ${run} is not known here`;
    case 'ended':
      return undefined;
  }
}

export const uncommittedText = (files: readonly string[]): string =>
  `it has uncommitted changes: ${files.slice(0, 5).map(printable).join(', ')}${files.length > 5 ? ` and ${files.length - 5} more` : ''}`;
