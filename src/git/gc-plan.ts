/** What there is in a repository of all that Reprise made. */
export interface GcFacts {
  readonly workspaces: readonly WorkspaceFact[];
  readonly branches: readonly BranchFact[];
  /** Folders that a landing left behind. */
  readonly scratch: readonly string[];
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
}

export interface BranchFact {
  readonly branch: string;
  readonly run: string | undefined;
  /** Commits that are neither landed nor on another branch; `gone` if the branch was deleted. */
  readonly unlanded: number | 'gone';
  /** Where somebody else has checked it out. */
  readonly checkedOut: string | undefined;
}

/** `active`: may go on, so that it still needs what it has. */
export type RunStanding = 'active' | 'ended';

export type GcAction =
  | { readonly kind: 'remove-workspace'; readonly path: string; readonly branch: string }
  | { readonly kind: 'delete-branch'; readonly branch: string }
  | { readonly kind: 'remove-scratch'; readonly path: string }
  | { readonly kind: 'remove-unborn'; readonly path: string };

export interface GcPlan {
  readonly remove: readonly GcAction[];
  /** Branches whose commits are nowhere else: they stay, and are named. */
  readonly park: readonly { readonly branch: string; readonly commits: number }[];
  readonly leave: readonly { readonly what: string; readonly why: string }[];
}

/**
 * What can go: workspaces and branches of runs that have ended, if nothing in them would be lost. Runs that are not in
 * the map may belong to somebody else, and are left alone.
 */
export function planGc(facts: GcFacts, runs: ReadonlyMap<string, RunStanding>): GcPlan {
  const remove: GcAction[] = [];
  const park: { branch: string; commits: number }[] = [];
  const leave: { what: string; why: string }[] = [];
  const stays = new Set<string>();

  for (const { path, branch, run, empty, uncommitted } of facts.workspaces) {
    const why =
      reasonToWait(run, runs) ??
      (uncommitted.length > 0 && !empty ? uncommittedText(uncommitted) : undefined);
    if (why === undefined) remove.push({ kind: 'remove-workspace', path, branch });
    else {
      leave.push({ what: path, why });
      stays.add(branch);
    }
  }
  const removed = new Set(remove.map(action => ('branch' in action ? action.branch : '')));
  for (const { branch, run, unlanded, checkedOut } of facts.branches) {
    if (stays.has(branch)) continue;
    const why = reasonToWait(run, runs) ?? (checkedOut && `it is checked out in ${checkedOut}`);
    if (why !== undefined) leave.push({ what: branch, why });
    else if (unlanded !== 'gone' && unlanded > 0) park.push({ branch, commits: unlanded });
    // A branch goes with its workspace.
    else if (!removed.has(branch)) remove.push({ kind: 'delete-branch', branch });
  }
  for (const path of facts.scratch) {
    if (facts.landing) leave.push({ what: path, why: 'a landing is going on' });
    else remove.push({ kind: 'remove-scratch', path });
  }
  for (const path of facts.unborn) remove.push({ kind: 'remove-unborn', path });
  return { remove, park, leave };
}

function reasonToWait(run: string | undefined, runs: ReadonlyMap<string, RunStanding>): string | undefined {
  const standing = run === undefined ? 'ended' : runs.get(run);
  switch (standing) {
    case 'active':
      return `run ${run} may go on`;
    case undefined:
      return `run ${run} is not known here`;
    case 'ended':
      return undefined;
  }
}

const uncommittedText = (files: readonly string[]): string =>
  `it has uncommitted changes: ${files.slice(0, 5).join(', ')}${files.length > 5 ? ` and ${files.length - 5} more` : ''}`;
