import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import type { Owner } from '../../store/index.ts';
import { removeEmptyObjects, removeIfThere } from '../files.ts';
import { type Git, type GitResult, lastLines } from '../git.ts';
import { type LockPatience, withRepositoryLock } from '../lock.ts';
import { branchPrefix, isBranchName } from '../names.ts';
import { branchTip, resolveBase } from '../refs.ts';
import type { Repository } from '../repository.ts';
import { readBranchRecord, writeBranchRecord } from './branch-records.ts';
import { otherRepository } from './commit.ts';
import {
  gitDirOf,
  gitInside,
  intendedLabel,
  intendWorktree,
  markReady,
  realPath,
  type WorktreeLabel,
  worktreeAt,
  worktreeConditionAt,
  worktreeEntries,
} from './entries.ts';
import { isSetUp } from './save.ts';
import { addWorktree, copyIncluded, discardWorktree } from './worktree.ts';

export interface WorkspaceRequest extends LockPatience {
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
      await repairAfterPowerLoss(repository, { path, branch, base });
      return { workspace: { ...workspace, base }, made: 'reused', isSetUp: isSetUp(state.gitDir) };
    }
    const found = intendedLabel(repository, path) ?? (await worktreeAt(repository, path))?.label;
    const before = ownLabel(found, request);
    if (state.kind === 'foreign') throw otherRepository(path, ['.git']);
    await discardWorktree(repository, { path, label: before });
    made = 'remade';
  }
  mkdirSync(dirname(path), { recursive: true });
  let refusal = await tryToAdd(request, label);
  if (refusal !== undefined) {
    const entry = await worktreeAt(repository, path);
    if (entry === undefined) throw failed(`cannot make the workspace ${path}: ${refusal}`);
    // Git knows the worktree, but its folder is gone.
    await discardWorktree(repository, { path, label: ownLabel(entry.label, request) });
    made = 'remade';
    refusal = await tryToAdd(request, label);
    if (refusal !== undefined) throw failed(`cannot make the workspace ${path}: ${refusal}`);
  }
  await finish(request, label);
  return { workspace, made, isSetUp: false };
}

/**
 * Repairs a workspace in which a power loss emptied files that had not reached the disk. Otherwise an emptied file would be
 * committed like a change of the agent, and no command would work on a branch with an empty object. Changes nothing in
 * other workspaces.
 */
async function repairAfterPowerLoss(
  repository: Repository,
  { path, branch, base }: { readonly path: string; readonly branch: string; readonly base: string },
): Promise<void> {
  removeEmptyObjects(repository);
  const git = gitInside(repository, path);
  if (!(await isComplete(git, base))) {
    // The agent committed right before the power loss, and its git had not synced the objects.
    await git.ok(['update-ref', `refs/heads/${branch}`, base], { hooks: 'skip' });
    await git.ok(['symbolic-ref', 'HEAD', `refs/heads/${branch}`]);
    removeIfThere(await git.line(['rev-parse', '--path-format=absolute', '--git-path', 'index']));
    await git.ok(['read-tree', base], { hooks: 'skip' });
    await restore(git, await emptiedFiles(git, () => true));
  } else await restore(git, await emptiedFiles(git, isOlderThanItsEntry));
}

/** Whether all objects can be read that the workspace has on top of its base, and those that its index names. */
async function isComplete(git: Git, base: string): Promise<boolean> {
  const listed = await git.run(['rev-list', '--objects', '--no-object-names', 'HEAD', `^${base}`]);
  const staged = await git.run([
    'diff-index',
    '--cached',
    '--raw',
    '-z',
    '--no-abbrev',
    '--no-renames',
    base,
    '--',
  ]);
  if (listed.code !== 0 || staged.code !== 0) return false;
  const ids = staged.stdout.split('\0').flatMap(entry => {
    const [, mode, , id = ''] = entry.startsWith(':') ? entry.split(' ') : [];
    return mode === undefined || mode === '000000' || mode === '160000' || /^0+$/.test(id) ? [] : id;
  });
  const input = `${[...listed.stdout.split('\n'), ...ids].filter(id => id !== '').join('\n')}\n`;
  const checked = await git.run(['cat-file', '--batch-check'], { input });
  return checked.code === 0 && !/ missing$/m.test(checked.stdout);
}

/** Tracked files that are empty although git did not check them out as empty files. */
async function emptiedFiles(
  git: Git,
  wasLost: (file: { readonly mtimeNs: bigint; readonly entry: string }) => boolean,
): Promise<readonly string[]> {
  const changed = (await git.ok(['diff-files', '--name-only', '-z', '--diff-filter=M'])).split('\0');
  const empty = changed.filter(
    name => name !== '' && statSync(join(git.cwd, name), { throwIfNoEntry: false })?.size === 0,
  );
  const lost: string[] = [];
  for (const name of empty) {
    const entry = await git.ok(['--literal-pathspecs', 'ls-files', '--debug', '-z', '--', name]);
    const { mtimeNs } = statSync(join(git.cwd, name), { bigint: true });
    if (wasLost({ mtimeNs, entry })) lost.push(name);
  }
  return lost;
}

/** Whether nothing has written to the file since git checked it out: only the power loss can have emptied it. */
function isOlderThanItsEntry({
  mtimeNs,
  entry,
}: {
  readonly mtimeNs: bigint;
  readonly entry: string;
}): boolean {
  const [, seconds = '', nanoseconds = ''] = /mtime: (\d+):(\d+)/.exec(entry) ?? [];
  const size = /size: (\d+)/.exec(entry)?.[1];
  return size !== '0' && BigInt(seconds || 0) * 1_000_000_000n + BigInt(nanoseconds || 0) === mtimeNs;
}

const restore = async (git: Git, names: readonly string[]): Promise<void> => {
  if (names.length === 0) return;
  const input = names.map(name => `${name}\0`).join('');
  await git.ok(['checkout-index', '--force', '-u', '-z', '--stdin'], { input, hooks: 'skip' });
};

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
