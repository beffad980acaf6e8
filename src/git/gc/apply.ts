import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Owner } from '../../store/index.ts';
import { namesIn, readIfThere } from '../files.ts';
import { isLockFree, type LockRequest, withRepositoryLock } from '../lock.ts';
import { resolveCommit } from '../refs.ts';
import type { Repository } from '../repository.ts';
import { type BranchRecord, branchRecords } from '../workspace/branch-records.ts';
import { uncommittedFiles } from '../workspace/commit.ts';
import {
  gitInside,
  labelIn,
  ownRepository,
  submodulesWithOwnCommits,
  type WorktreeCondition,
  type WorktreeEntry,
  worktreeConditionAt,
  worktreeEntries,
} from '../workspace/entries.ts';
import {
  type BranchFate,
  type Removal,
  removeWorkspace,
  tidyBranch,
  unlandedCommits,
} from '../workspace/remove.ts';
import { discardScratch } from '../workspace/worktree.ts';
import {
  type BranchFact,
  type GcAction,
  type GcFacts,
  type GcPlan,
  type KeptItem,
  type ParkedBranch,
  uncommittedText,
  type WorkspaceFact,
} from './plan.ts';

/** Collects facts about everything that Reprise made in the repository, without changing anything. */
export async function gatherGcFacts(request: Omit<LockRequest, 'name'>): Promise<GcFacts> {
  const facts = await withRepositoryLock({ ...request, name: 'worktrees' }, held => gather(held.repository));
  // Measured without the lock, because it takes long and no decision depends on it.
  return {
    ...facts,
    workspaces: await measured(facts.workspaces),
    scratch: await measured(facts.scratch),
  };
}

async function measured<T extends { readonly path: string }>(things: readonly T[]): Promise<readonly T[]> {
  const result: T[] = [];
  for (const thing of things) result.push({ ...thing, bytes: await diskUse(thing.path) });
  return result;
}

async function gather(repository: Repository): Promise<GcFacts> {
  const entries = await worktreeEntries(repository);
  const own = entries.filter(entry => entry.label?.kind === 'workspace');
  const workspaces: WorkspaceFact[] = [];
  for (const inspected of await inOrder(repository, own))
    workspaces.push(await workspaceFact(repository, inspected));
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
    scratch: entries.flatMap(({ label, path }) => (label?.kind === 'landing' ? { path, bytes: 0 } : [])),
    landing: !isLockFree(repository, 'land'),
    unborn: unbornEntries(repository),
  };
}

/**
 * Lists the git folders of worktrees whose creation was killed right at the start. They have a label but no place yet, so
 * git neither lists nor prunes them.
 */
function unbornEntries({ commonDir }: Repository): readonly string[] {
  const folder = join(commonDir, 'worktrees');
  return namesIn(folder)
    .map(name => join(folder, name))
    .filter(gitDir => readIfThere(join(gitDir, 'gitdir')) === undefined)
    .filter(gitDir => labelIn(readIfThere(join(gitDir, 'locked')) ?? '') !== undefined);
}

interface InspectedWorktree {
  readonly entry: WorktreeEntry;
  readonly state: WorktreeCondition;
}

/** Sorts worktrees by their git folders. Git numbers those of the same name, so it is the order of their creation. */
async function inOrder(
  repository: Repository,
  entries: readonly WorktreeEntry[],
): Promise<readonly InspectedWorktree[]> {
  const inspected: InspectedWorktree[] = [];
  for (const entry of entries)
    inspected.push({ entry, state: await worktreeConditionAt(repository, entry.path) });
  const keyOf = ({ entry, state }: InspectedWorktree) =>
    state.kind === 'finished' ? state.gitDir : entry.path;
  return inspected.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

async function workspaceFact(
  repository: Repository,
  { entry: { path, label }, state }: InspectedWorktree,
): Promise<WorkspaceFact> {
  return {
    path,
    branch: label?.branch ?? '',
    run: label?.run,
    empty: state.kind === 'unfinished',
    uncommitted: await uncommittedIn(repository, path, state),
    bytes: 0,
  };
}

async function uncommittedIn(
  repository: Repository,
  path: string,
  state: WorktreeCondition,
): Promise<readonly string[]> {
  if (state.kind !== 'finished') return state.kind === 'foreign' ? ['.git/'] : [];
  return [
    ...(await uncommittedFiles(gitInside(repository, path))),
    ...(await submodulesWithOwnCommits(repository.git, state.gitDir)),
    ...ownRepository(path),
  ];
}

async function branchFact({ git }: Repository, record: BranchRecord): Promise<BranchFact> {
  const { branch, run } = record;
  const ref = `refs/heads/${branch}`;
  const tip = await resolveCommit(git, ref);
  if (tip === undefined) return { branch, run, tip, unlanded: 0, checkedOut: undefined };
  const path = await git.line(['for-each-ref', '--format=%(worktreepath)', ref]);
  return {
    branch,
    run,
    tip,
    unlanded: await unlandedCommits(git, tip, record),
    checkedOut: path === '' ? undefined : path,
  };
}

interface GcRequest {
  readonly repository: Repository;
  readonly owner: Owner;
  readonly plan: GcPlan;
  readonly signal?: AbortSignal | undefined;
}

export interface GcDone {
  readonly removed: readonly RemovedItem[];
  /** Branches that were kept, or created, for commits that are nowhere else. */
  readonly parked: readonly ParkedBranch[];
  /** Items of the plan that were kept after all, because they changed since. */
  readonly left: readonly KeptItem[];
}

export interface RemovedItem {
  /** `state`: state of a former version that was imported. */
  readonly kind: 'workspace' | 'branch' | 'scratch' | 'unborn' | 'state';
  /** Path, or name of a branch. */
  readonly what: string;
  /** Size on disk according to the plan. 0 for a branch. */
  readonly bytes: number;
}

const nothing: GcDone = { removed: [], parked: [], left: [] };

/** Executes the plan. Checks every item again first, and keeps what must no longer be removed. */
export async function applyGc({ plan, ...request }: GcRequest): Promise<GcDone> {
  const removed: RemovedItem[] = [];
  const left: KeptItem[] = [];
  const parked = new Map(plan.park.map(each => [each.branch, each]));
  for (const action of plan.remove) {
    const done = await perform(action, request);
    removed.push(...done.removed);
    left.push(...done.left);
    for (const each of done.parked) parked.set(each.branch, each);
  }
  return { removed, parked: [...parked.values()], left };
}

async function perform(action: GcAction, request: Omit<GcRequest, 'plan'>): Promise<GcDone> {
  const underLock = <T>(name: 'land' | 'worktrees', body: (repository: Repository) => Promise<T>) =>
    withRepositoryLock({ ...request, name }, held => body(held.repository));
  switch (action.kind) {
    case 'remove-workspace':
      return workspaceDone(action, await removeWorkspace({ ...request, path: action.path }));
    case 'delete-branch':
      return branchDone(await underLock('worktrees', repository => tidyBranch(repository, action.branch)));
    case 'remove-scratch':
      await underLock('land', () => underLock('worktrees', discardScratch));
      return { ...nothing, removed: [{ kind: 'scratch', what: action.path, bytes: action.bytes }] };
    case 'remove-unborn':
      await underLock('worktrees', async repository => {
        if (unbornEntries(repository).includes(action.path)) await rm(action.path, { recursive: true });
      });
      return { ...nothing, removed: [{ kind: 'unborn', what: action.path, bytes: 0 }] };
  }
}

function workspaceDone(
  { path, bytes }: Extract<GcAction, { kind: 'remove-workspace' }>,
  removal: Removal,
): GcDone {
  if (removal.kind === 'uncommitted-changes') {
    const why = uncommittedText(removal.files);
    return { ...nothing, left: [{ kind: 'workspace', what: path, why, bytes }] };
  }
  const { branch, parked } = removal;
  const rest = branch ? branchDone(branch) : nothing;
  return {
    removed: [{ kind: 'workspace', what: path, bytes }, ...rest.removed],
    parked: [...(parked ? [parked] : []), ...rest.parked],
    left: rest.left,
  };
}

function branchDone(fate: BranchFate): GcDone {
  const { branch } = fate;
  switch (fate.kind) {
    case 'deleted':
      return { ...nothing, removed: [{ kind: 'branch', what: branch, bytes: 0 }] };
    case 'gone':
      return nothing;
    case 'kept':
      return fate.why === 'unlanded commits'
        ? { ...nothing, parked: [{ branch, commit: fate.tip, commits: fate.commits }] }
        : { ...nothing, left: [{ kind: 'branch', what: branch, why: fate.why, bytes: 0 }] };
  }
}

/** Returns the size of a folder on disk. A file with several hard links counts once. Unreadable files are skipped. */
export async function diskUse(folder: string): Promise<number> {
  const seen = new Set<string>();
  const waiting = [folder];
  let bytes = 0;
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const stat = await lstat(path).catch(() => undefined);
    if (stat === undefined) continue;
    const inode = `${stat.dev}:${stat.ino}`;
    if (stat.nlink > 1 && !stat.isDirectory() && seen.has(inode)) continue;
    seen.add(inode);
    bytes += stat.blocks * 512;
    if (!stat.isDirectory()) continue;
    for (const name of await readdir(path).catch(() => [])) waiting.push(join(path, name));
  }
  return bytes;
}
