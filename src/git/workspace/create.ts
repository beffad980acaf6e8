import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, isAbsolute } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import type { Owner } from '../../store/index.ts';
import { type GitResult, lastLines } from '../git.ts';
import { type LockRequest, withRepositoryLock } from '../lock.ts';
import { branchPrefix, isBranchName } from '../names.ts';
import { branchTip, resolveBase } from '../refs.ts';
import type { Repository } from '../repository.ts';
import { readBranchRecord, writeBranchRecord } from './branch-records.ts';
import { otherRepository } from './commit.ts';
import {
  gitDirOf,
  intendedLabel,
  intendWorktree,
  markReady,
  realPath,
  type WorktreeLabel,
  worktreeAt,
  worktreeConditionAt,
  worktreeEntries,
} from './entries.ts';
import { copyIncluded } from './include-files.ts';
import { isSetUp } from './save.ts';
import { addWorktree, discardWorktree } from './worktree.ts';

export interface WorkspaceRequest {
  readonly repository: Repository;
  readonly owner: Owner;
  /** Absolute path. Parent folders are created. */
  readonly path: string;
  /** Commit to start from. If the branch exists, the workspace starts from its tip instead. */
  readonly base: string;
  readonly branch: string;
  readonly run?: string | undefined;
  readonly step?: string | undefined;
  readonly worker?: number | undefined;
  /** Patterns of ignored files to copy, in addition to those in `.worktreeinclude`. */
  readonly include?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onWait?: LockRequest['onWait'];
}

/** A separate folder on a separate branch. */
export interface Workspace {
  readonly path: string;
  readonly branch: string;
  /** Commit that it started from. */
  readonly base: string;
  readonly run?: string | undefined;
  readonly step?: string | undefined;
  readonly worker?: number | undefined;
}

export interface CreatedWorkspace {
  readonly workspace: Workspace;
  /** How it was obtained. `reused`: it existed, with its work. `remade`: an unfinished or deleted one was made again. */
  readonly made: 'new' | 'reused' | 'remade';
  /** Whether its setup has completed. */
  readonly isSetUp: boolean;
  /** Whether the lock was held throughout, so that no other process could add or remove a worktree. */
  readonly wasAlone: boolean;
}

/**
 * Makes a git worktree, or finds the one that an earlier call with the same path and branch made. Worktrees are made one at
 * a time per repository, across processes. Commits on the branch are kept, and the user's checkout does not change. Throws
 * WORKSPACE_FAILED if the path or the branch is in use for something else, or if the base is not a commit.
 */
export async function createWorkspace(request: WorkspaceRequest): Promise<CreatedWorkspace> {
  const { path, branch, run, step, worker } = request;
  if (!isAbsolute(path)) throw failed(`the path of a workspace must be absolute: ${path}`);
  if (!isBranchName(branch)) throw failed(`${JSON.stringify(branch)} cannot be the name of a branch`);
  const base = await resolveBase(request.repository, request.base);
  const label: WorktreeLabel = { kind: 'workspace', base, branch, run, step, worker };
  return withRepositoryLock({ ...request, name: 'worktrees' }, async ({ repository, isHeld }) => {
    const created = await makeOrFind({ ...request, repository, base }, label);
    return { ...created, wasAlone: isHeld() };
  });
}

/** Lists the workspaces that Reprise made in this repository; `missing` if the folder was deleted. */
export const listWorkspaces = async (
  repository: Pick<Repository, 'git'>,
): Promise<readonly (Workspace & { readonly missing: boolean })[]> =>
  (await worktreeEntries(repository)).flatMap(({ label, path, missing }) => {
    if (label?.kind !== 'workspace' || label.branch === undefined) return [];
    const { kind: _, branch, ...rest } = label;
    return { path, branch, ...rest, missing };
  });

type MadeWorkspace = Omit<CreatedWorkspace, 'wasAlone'>;

async function makeOrFind(request: WorkspaceRequest, label: WorktreeLabel): Promise<MadeWorkspace> {
  const { repository, path, branch } = request;
  const { kind: _, ...rest } = label;
  const workspace = { ...rest, path: realPath(path), branch };
  let made: 'new' | 'remade' = 'new';
  if (existsSync(path) && readdirSync(path).length > 0) {
    const state = await worktreeConditionAt(repository, path);
    if (state.kind === 'finished') {
      const { base } = ownLabel(state.label, request);
      return { workspace: { ...workspace, base }, made: 'reused', isSetUp: isSetUp(state.gitDir) };
    }
    ownLabel(intendedLabel(repository, path) ?? (await worktreeAt(repository, path))?.label, request);
    if (state.kind === 'foreign') throw otherRepository(path, ['.git']);
    await discardWorktree(repository, path);
    made = 'remade';
  }
  mkdirSync(dirname(path), { recursive: true });
  let refusal = await tryToAdd(request, label);
  if (refusal !== undefined) {
    const entry = await worktreeAt(repository, path);
    if (entry === undefined) throw failed(`cannot make the workspace ${path}: ${refusal}`);
    // Git knows the worktree, but its folder is gone.
    ownLabel(entry.label, request);
    await discardWorktree(repository, path);
    made = 'remade';
    refusal = await tryToAdd(request, label);
    if (refusal !== undefined) throw failed(`cannot make the workspace ${path}: ${refusal}`);
  }
  await finish(request, label);
  return { workspace, made, isSetUp: false };
}

/** Returns the message of git if it refuses. */
async function tryToAdd(request: WorkspaceRequest, label: WorktreeLabel): Promise<string | undefined> {
  const { repository, path, base, branch, run } = request;
  intendWorktree(repository, { path, label });
  const worktree = { ...request, label, hooks: 'run' } as const;
  const fresh = await addWorktree({ ...worktree, commit: base, options: ['--no-track', '-b', branch] });
  const record = { branch, base, ...(run === undefined ? {} : { run }) };
  if (fresh.code === 0) {
    writeBranchRecord(repository, record);
    return undefined;
  }
  if ((await branchTip(repository, branch)) === undefined) return reasonOf(fresh);
  const again = await addWorktree({ ...worktree, commit: branch });
  if (again.code !== 0) return reasonOf(again);
  // A crash may have left the branch without its record. No other program makes branches with this prefix.
  if (branch.startsWith(branchPrefix) && !readBranchRecord(repository, branch)) {
    writeBranchRecord(repository, record);
  }
  return undefined;
}

/** A hook that fails makes git fail, and may print nothing. */
const reasonOf = ({ code, stderr }: GitResult): string =>
  lastLines(stderr) ||
  `\`git worktree add\` exited with ${code} and printed nothing; check the post-checkout hook of the repository`;

async function finish({ repository, path, include }: WorkspaceRequest, label: WorktreeLabel): Promise<void> {
  const gitDir = await gitDirOf(repository, path);
  if (gitDir === undefined) throw failed(`git made no worktree at ${path}`);
  const { git, root } = repository;
  if (root !== undefined) await copyIncluded({ git, root, target: path, patterns: include });
  await markReady(repository, { path, gitDir, label });
}

/** Throws WORKSPACE_FAILED unless Reprise made the worktree for the same branch. */
function ownLabel(label: WorktreeLabel | undefined, { path, branch }: WorkspaceRequest): WorktreeLabel {
  if (label === undefined) {
    throw failed(`${path} already exists, and is not a workspace that Reprise made`, {
      hint: 'move it away, or remove it if nothing in it is needed',
    });
  }
  if (label.branch !== branch) {
    throw failed(`${path} is the workspace of ${label.branch ?? 'a landing'}, not of ${branch}`);
  }
  return label;
}

const failed = (message: string, options: { hint?: string } = {}): RepriseError =>
  new RepriseError('WORKSPACE_FAILED', message, options);
