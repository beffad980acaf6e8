import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, isAbsolute } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import type { Owner } from '../../store/index.ts';
import { lastLines } from '../git.ts';
import { type LockRequest, withRepositoryLock } from '../lock.ts';
import { branchPrefix, isBranchName } from '../names.ts';
import { resolveBase } from '../refs.ts';
import { type Repository, resolveCommit } from '../repository.ts';
import { readBranchRecord, writeBranchRecord } from './branch-records.ts';
import {
  markReady,
  privateGitDir,
  realPath,
  restoreLink,
  type WorktreeEntry,
  type WorktreeLabel,
  worktreeAt,
  worktreeEntries,
} from './entries.ts';
import { copyIncluded } from './include-files.ts';
import { addWorktree, worktreeAdd } from './worktree.ts';

export interface WorkspaceRequest {
  readonly repository: Repository;
  readonly owner: Owner;
  /** Absolute; its parents are made. */
  readonly path: string;
  /** The commit to begin from. A branch that exists is taken as it stands instead. */
  readonly base: string;
  readonly branch: string;
  readonly run?: string | undefined;
  readonly step?: string | undefined;
  readonly worker?: number | undefined;
  /** Patterns of ignored files to copy, beside those in `.worktreeinclude`. */
  readonly include?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onWait?: LockRequest['onWait'];
}

/** A folder of its own on a branch of its own. */
export interface Workspace {
  readonly path: string;
  readonly branch: string;
  /** The commit that it began from. */
  readonly base: string;
  readonly run?: string | undefined;
  readonly step?: string | undefined;
  readonly worker?: number | undefined;
}

export interface CreatedWorkspace {
  readonly workspace: Workspace;
  /** `reused`: it was there, with whatever had been done in it. `remade`: an unfinished or lost one was made anew. */
  readonly made: 'new' | 'reused' | 'remade';
  /** Nobody else could make or remove a worktree meanwhile. */
  readonly wasAlone: boolean;
}

/**
 * Makes a git worktree, or finds the one that an earlier call with the same path and branch made. One at a time per
 * repository, across processes. Commits on the branch are kept. The user's checkout is not touched. Throws
 * WORKSPACE_FAILED if the path or the branch is somebody else's, or the base is no commit.
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

/** The workspaces that Reprise made in this repository, by path; `missing` if the folder is gone. */
export const listWorkspaces = (
  repository: Repository,
): readonly (Workspace & { readonly missing: boolean })[] =>
  worktreeEntries(repository).flatMap(({ label, path, missing }) => {
    if (label?.kind !== 'workspace' || label.branch === undefined) return [];
    const { kind: _, branch, ...rest } = label;
    return { path, branch, ...rest, missing };
  });

async function makeOrFind(
  request: WorkspaceRequest,
  label: WorktreeLabel,
): Promise<Omit<CreatedWorkspace, 'wasAlone'>> {
  const { repository, path, branch } = request;
  const { kind: _, ...rest } = label;
  const workspace = { ...rest, path: realPath(path), branch };
  let made: 'new' | 'remade' = 'new';
  if (existsSync(path) && readdirSync(path).length > 0) {
    const entry = ownEntry(worktreeAt(repository, path), request);
    if (entry.ready) {
      restoreLink(repository, path);
      return { workspace: { ...workspace, base: entry.label.base }, made: 'reused' };
    }
    await discardUnfinished(entry);
    made = 'remade';
  }
  mkdirSync(dirname(path), { recursive: true });
  let refusal = await tryToAdd(request, label);
  if (refusal !== undefined) {
    const entry = worktreeAt(repository, path);
    if (entry === undefined) throw failed(`cannot make the workspace ${path}: ${refusal}`);
    // Known to git, but without its folder.
    await discardUnfinished(ownEntry(entry, request));
    made = 'remade';
    refusal = await tryToAdd(request, label);
    if (refusal !== undefined) throw failed(`cannot make the workspace ${path}: ${refusal}`);
  }
  await finish(request, label);
  return { workspace, made };
}

/** What git said if it refused. */
async function tryToAdd(
  { repository, path, base, branch, run, signal }: WorkspaceRequest,
  label: WorktreeLabel,
): Promise<string | undefined> {
  const { git } = repository;
  const fresh = await addWorktree({ repository, path, label, commit: base, branch, hooks: 'run', signal });
  const record = { branch, base, ...(run === undefined ? {} : { run }) };
  if (fresh.code === 0) {
    writeBranchRecord(repository, record);
    return undefined;
  }
  if ((await resolveCommit(git, `refs/heads/${branch}`)) === undefined) return lastLines(fresh.stderr);
  const again = await git.run([...worktreeAdd(label), '--', path, branch], { signal });
  if (again.code !== 0) return lastLines(again.stderr);
  // A crash may have come between the branch and its record; nobody else makes branches with such names.
  if (branch.startsWith(branchPrefix) && !readBranchRecord(repository, branch)) {
    writeBranchRecord(repository, record);
  }
  return undefined;
}

async function finish({ repository, path, include }: WorkspaceRequest, label: WorktreeLabel): Promise<void> {
  const gitDir = privateGitDir(path);
  if (gitDir === undefined) throw failed(`git made no worktree at ${path}`);
  const { git, root } = repository;
  if (root !== undefined) await copyIncluded({ git, root, target: path, patterns: include });
  markReady(gitDir, label);
}

type OwnEntry = WorktreeEntry & { readonly label: WorktreeLabel };

/** Throws WORKSPACE_FAILED unless Reprise made it, for the same branch. */
function ownEntry(entry: WorktreeEntry | undefined, { path, branch }: WorkspaceRequest): OwnEntry {
  if (entry?.label === undefined) {
    throw failed(`${path} is there already, and is not a workspace that Reprise made`, {
      hint: 'move it away, or remove it if nothing in it is needed',
    });
  }
  if (entry.label.branch !== branch) {
    throw failed(`${path} is the workspace of ${entry.label.branch ?? 'a landing'}, not of ${branch}`);
  }
  return { ...entry, label: entry.label };
}

/** For one that nobody has worked in, or whose folder is gone. Its branch stays. */
export async function discardUnfinished({ path, gitDir, ready, missing }: WorktreeEntry): Promise<void> {
  if (ready && !missing) throw failed(`${path} is a finished workspace`);
  if (!ready) await rm(path, { recursive: true, force: true });
  await rm(gitDir, { recursive: true, force: true });
}

const failed = (message: string, options: { hint?: string } = {}): RepriseError =>
  new RepriseError('WORKSPACE_FAILED', message, options);
