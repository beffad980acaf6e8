import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Owner } from '../store/port.ts';
import { type BranchRecord, branchRecords } from './branch-records.ts';
import type { BranchFact, GcAction, GcFacts, GcPlan, WorkspaceFact } from './gc-plan.ts';
import { readLock } from './lock-file.ts';
import { type ParkedCommits, removeWorkspace } from './remove-workspace.ts';
import { type Repository, resolveCommit } from './repository.ts';
import { type LockRequest, withRepositoryLock } from './repository-lock.ts';
import { discardScratch } from './scratch-worktree.ts';
import { uncommittedFiles } from './status.ts';
import { type BranchFate, tidyBranch, unlandedCommits } from './unlanded.ts';
import { unbornEntries, type WorktreeEntry, worktreeEntries } from './worktree-entries.ts';

/** Looks at everything that Reprise made in the repository, and touches nothing. */
export const gatherGcFacts = (request: Omit<LockRequest, 'name'>): Promise<GcFacts> =>
  withRepositoryLock({ ...request, name: 'worktrees' }, held => gather(held.repository));

async function gather(repository: Repository): Promise<GcFacts> {
  const entries = worktreeEntries(repository);
  const own = entries.filter(entry => entry.label?.kind === 'workspace');
  const workspaces: WorkspaceFact[] = [];
  for (const entry of own) workspaces.push(await workspaceFact(repository, entry));
  const paths = new Set(own.map(entry => entry.path));
  const branches: BranchFact[] = [];
  for (const record of branchRecords(repository)) {
    const fact = await branchFact(repository, record);
    const { checkedOut } = fact;
    branches.push({ ...fact, checkedOut: checkedOut && paths.has(checkedOut) ? undefined : checkedOut });
  }
  return {
    workspaces,
    branches,
    scratch: entries.flatMap(({ label, path }) => (label?.kind === 'landing' ? path : [])),
    landing: readLock(join(repository.commonDir, 'reprise', 'locks', 'land')).kind === 'held',
    unborn: unbornEntries(repository),
  };
}

async function workspaceFact(
  { git }: Repository,
  { path, label, ready, missing }: WorktreeEntry,
): Promise<WorkspaceFact> {
  const empty = !ready || missing;
  return {
    path,
    branch: label?.branch ?? '',
    run: label?.run,
    empty,
    uncommitted: empty ? [] : await uncommittedFiles(git.with({ cwd: path })),
  };
}

async function branchFact({ git }: Repository, record: BranchRecord): Promise<BranchFact> {
  const { branch, run } = record;
  const ref = `refs/heads/${branch}`;
  const tip = await resolveCommit(git, ref);
  if (tip === undefined) return { branch, run, unlanded: 'gone', checkedOut: undefined };
  const path = await git.line(['for-each-ref', '--format=%(worktreepath)', ref]);
  return {
    branch,
    run,
    unlanded: await unlandedCommits(git, tip, record),
    checkedOut: path === '' ? undefined : path,
  };
}

export interface GcRequest {
  readonly repository: Repository;
  readonly owner: Owner;
  readonly plan: GcPlan;
  readonly signal?: AbortSignal | undefined;
}

export interface GcDone {
  readonly removed: readonly string[];
  /** Branches that were kept because of their commits, or made for them. */
  readonly parked: readonly { readonly branch: string; readonly commits: number }[];
  /** What has changed since the plan was made, and was left. */
  readonly left: readonly { readonly what: string; readonly why: string }[];
}

/** Does what the plan says. Everything is looked at again first: what has become worth keeping is kept. */
export async function applyGc({ plan, ...request }: GcRequest): Promise<GcDone> {
  const done = {
    removed: [] as string[],
    parked: [...plan.park],
    left: [] as { what: string; why: string }[],
  };
  for (const action of plan.remove) {
    const { removed, parked, left } = await perform(action, request);
    done.removed.push(...removed);
    done.left.push(...left);
    for (const each of parked) {
      if (!done.parked.some(({ branch }) => branch === each.branch)) done.parked.push(each);
    }
  }
  return done;
}

async function perform(action: GcAction, request: Omit<GcRequest, 'plan'>): Promise<GcDone> {
  const underLock = <T>(name: 'land' | 'worktrees', body: (repository: Repository) => Promise<T>) =>
    withRepositoryLock({ ...request, name }, held => body(held.repository));
  switch (action.kind) {
    case 'remove-workspace': {
      const removal = await removeWorkspace({ ...request, path: action.path });
      if (removal.kind === 'removed') return removed(action.path, removal);
      return { removed: [], parked: [], left: [{ what: action.path, why: 'it has uncommitted changes' }] };
    }
    case 'delete-branch':
      return fateOf(await underLock('worktrees', repository => tidyBranch(repository, action.branch)));
    case 'remove-scratch':
      await underLock('land', () => underLock('worktrees', discardScratch));
      return { removed: [action.path], parked: [], left: [] };
    case 'remove-unborn':
      await underLock('worktrees', async repository => {
        if (unbornEntries(repository).includes(action.path)) await rm(action.path, { recursive: true });
      });
      return { removed: [action.path], parked: [], left: [] };
  }
}

function removed(
  path: string,
  { branch, parked }: { branch: BranchFate | undefined; parked: ParkedCommits | undefined },
): GcDone {
  const rest = branch ? fateOf(branch) : { removed: [], parked: [], left: [] };
  return {
    removed: [path, ...rest.removed],
    parked: [...(parked ? [parked] : []), ...rest.parked],
    left: rest.left,
  };
}

function fateOf(fate: BranchFate): GcDone {
  const { branch } = fate;
  switch (fate.kind) {
    case 'deleted':
      return { removed: [branch], parked: [], left: [] };
    case 'gone':
      return { removed: [], parked: [], left: [] };
    case 'kept':
      return fate.why === 'unlanded commits'
        ? { removed: [], parked: [{ branch, commits: fate.commits }], left: [] }
        : { removed: [], parked: [], left: [{ what: branch, why: fate.why }] };
  }
}
