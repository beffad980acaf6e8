import { constants, existsSync, mkdirSync } from 'node:fs';
import { copyFile, lstat, mkdir, readlink, rm, symlink } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import type { Owner } from '../../store/index.ts';
import { hasCode, readIfThere } from '../files.ts';
import { type Git, type GitResult, lastLines, withoutNewline } from '../git.ts';
import { type LockPatience, type LockRequest, withRepositoryLock } from '../lock.ts';
import { shellWord } from '../names.ts';
import type { Repository } from '../repository.ts';
import {
  allWorktrees,
  forgetPlace,
  intendedLabel,
  intendWorktree,
  lockReason,
  type WorktreeEntry,
  type WorktreeLabel,
  worktreeEntries,
} from './entries.ts';

interface NewWorktree {
  readonly repository: Repository;
  /** Path that does not exist, or an empty folder. */
  readonly path: string;
  readonly label: WorktreeLabel;
  /** Commit or branch to check out. */
  readonly commit: string;
  /** Options such as `--detach`, which decide what HEAD refers to. */
  readonly options?: readonly string[] | undefined;
  readonly hooks: 'run' | 'skip';
  readonly signal?: AbortSignal | undefined;
}

/** Runs `git worktree add`. Requires the `worktrees` lock. */
export const addWorktree = ({
  repository,
  path,
  label,
  commit,
  options = [],
  hooks,
  signal,
}: NewWorktree): Promise<GitResult> =>
  repository.git.run(
    ['worktree', 'add', '--quiet', '--lock', '--reason', lockReason(label), ...options, '--', path, commit],
    { hooks, signal },
  );

/**
 * Deletes a worktree with its folder, if there is one. Git refuses to remove a folder without a `.git` file, which a crash
 * may have left, but not a folder that is gone. Requires the `worktrees` lock.
 */
export async function discardWorktree(
  repository: Repository,
  worktree: { readonly path: string; readonly label: WorktreeLabel },
): Promise<void> {
  const { git } = repository;
  const { path } = worktree;
  const remove = () => git.run(['worktree', 'remove', '--force', '--force', '--', path], { hooks: 'skip' });
  if (!intendedLabel(repository, path)) intendWorktree(repository, worktree);
  const { code } = await remove();
  if (code !== 0 || existsSync(path)) {
    await rm(path, { recursive: true, force: true });
    if (code !== 0) await remove();
  }
  forgetPlace(repository, path);
}

export interface ScratchRequest extends LockPatience {
  readonly repository: Repository;
  readonly owner: Owner;
  readonly path: string;
  readonly commit: string;
  readonly include?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs the body with a checkout of the commit in a temporary worktree. Requires the `land` lock, so that any scratch
 * worktree found is one that a crash left.
 */
export async function withScratchWorktree<T>(request: ScratchRequest, body: () => Promise<T>): Promise<T> {
  const { owner, path } = request;
  await withRepositoryLock({ ...request, name: 'worktrees' }, async ({ repository }) => {
    await discardScratch(repository);
    await add({ ...request, repository });
  });
  try {
    return await body();
  } finally {
    // Without the signal: the worktree is removed even after a cancellation.
    await withRepositoryLock(
      { repository: request.repository, owner, name: 'worktrees' },
      async ({ repository }) => discardWorktree(repository, { path, label: scratchLabel(request) }),
    );
  }
}

/** Removes scratch worktrees that earlier landings left. Requires both locks. */
export async function discardScratch(repository: Repository): Promise<void> {
  for (const { label, path } of await worktreeEntries(repository)) {
    if (label?.kind === 'landing') await discardWorktree(repository, { path, label });
  }
}

const scratchLabel = ({ commit }: ScratchRequest): WorktreeLabel => ({ kind: 'landing', base: commit });

async function add(request: ScratchRequest): Promise<void> {
  const { repository, path, commit, include, signal } = request;
  const { git, root } = repository;
  if (existsSync(path)) {
    throw new RepriseError('WORKSPACE_FAILED', `${path} already exists, but is needed for landing`, {
      hint: 'move it away, or remove it if nothing in it is needed',
    });
  }
  mkdirSync(dirname(path), { recursive: true });
  const label = scratchLabel(request);
  const { code, stderr } = await addWorktree({
    repository,
    path,
    label,
    commit,
    options: ['--detach'],
    hooks: 'skip',
    signal,
  });
  if (code !== 0) {
    throw new RepriseError('WORKSPACE_FAILED', `cannot check out ${commit} in ${path}: ${lastLines(stderr)}`);
  }
  if (root !== undefined) await copyIncluded({ git, root, target: path, patterns: include });
}

interface IncludeOptions {
  readonly git: Git;
  /** Checkout to copy from. */
  readonly root: string;
  /** Worktree to copy to. */
  readonly target: string;
  /** Patterns in addition to those in `.worktreeinclude`. */
  readonly patterns?: readonly string[] | undefined;
}

const includeFile = '.worktreeinclude';

/**
 * Copies ignored files that match `.worktreeinclude` (in the syntax of `.gitignore`), such as `.env`. Existing files stay,
 * and nothing is written outside the target. Returns the copied paths.
 */
export async function copyIncluded({ git, root, target, patterns = [] }: IncludeOptions): Promise<string[]> {
  const hasFile = readIfThere(join(root, includeFile)) !== undefined;
  if (!hasFile && patterns.length === 0) return [];
  const from = git.with({ cwd: root });
  const matching = await from.ok(
    [
      'ls-files',
      '-z',
      '--others',
      '--ignored',
      ...patterns.map(pattern => `--exclude=${pattern}`),
      ...(hasFile ? [`--exclude-from=${includeFile}`] : []),
    ],
    { encoding: 'bytes' },
  );
  // A name that ends with a slash is another repository, such as a workspace.
  const files = matching.split('\0').filter(name => name !== '' && !name.endsWith('/'));
  const ignored = files.length === 0 ? [] : await onlyIgnored(from, files);
  const copied: string[] = [];
  for (const name of ignored) if (await copyOne({ name, root, target })) copied.push(name);
  return copied.map(name => Buffer.from(name, 'latin1').toString());
}

async function onlyIgnored(git: Git, files: readonly string[]): Promise<string[]> {
  const { stdout } = await git.run(['check-ignore', '-z', '--stdin'], {
    input: files.join('\0'),
    encoding: 'bytes',
  });
  return stdout.split('\0').filter(name => name !== '' && !name.startsWith('.reprise/'));
}

interface Copy {
  /** Path with one character per byte. */
  readonly name: string;
  readonly root: string;
  readonly target: string;
}

async function copyOne({ name, root, target }: Copy): Promise<boolean> {
  const from = pathOf(root, name);
  const to = pathOf(target, name);
  try {
    if (!(await makeFolders(target, dirname(name)))) return false;
    if ((await lstat(from)).isSymbolicLink()) await symlink(await readlink(from), to);
    else await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    return true;
  } catch (error) {
    // The target exists, or the file was deleted meanwhile.
    if (['EEXIST', 'ENOTDIR', 'ENOENT', 'EISDIR'].some(code => hasCode(error, code))) return false;
    throw error;
  }
}

/** Returns `false` if a folder is a symbolic link, because in the commit of the worktree it may lead elsewhere. */
async function makeFolders(target: string, name: string): Promise<boolean> {
  const parts = name === '.' ? [] : name.split('/');
  for (const [index] of parts.entries()) {
    const folder = pathOf(target, parts.slice(0, index + 1).join('/'));
    await mkdir(folder).catch(error => {
      if (!hasCode(error, 'EEXIST')) throw error;
    });
    if (!(await lstat(folder)).isDirectory()) return false;
  }
  return true;
}

const pathOf = (folder: string, name: string): Buffer =>
  Buffer.concat([Buffer.from(`${folder}${sep}`), Buffer.from(name, 'latin1')]);

export interface CheckoutRequest extends Omit<LockRequest, 'name'> {
  readonly branch: string;
}

/** Checkout of a branch. `busy` if the branch cannot be moved there. */
export type BranchCheckout =
  | { readonly kind: 'nowhere' }
  | { readonly kind: 'at'; readonly path: string; readonly tip: string | undefined }
  | { readonly kind: 'busy'; readonly path: string; readonly why: string; readonly hint: string };

/**
 * Finds the checkout of a branch. Takes the lock `worktrees`, because git cannot list worktrees while another process adds
 * one whose files are incomplete.
 */
export function checkoutOfBranch(request: CheckoutRequest): Promise<BranchCheckout> {
  return withRepositoryLock({ ...request, name: 'worktrees' }, held => find(held.repository, request.branch));
}

async function find(repository: Repository, branch: string): Promise<BranchCheckout> {
  const worktrees = (await allWorktrees(repository)).filter(({ missing }) => !missing);
  const rebased = await rebaseOf(repository, branch, worktrees);
  if (rebased !== undefined) {
    return {
      kind: 'busy',
      path: rebased,
      why: `${branch} is being rebased`,
      hint: 'finish the rebase (git rebase --continue) or abort it (git rebase --abort), then land again',
    };
  }
  const [first, second] = worktrees.filter(worktree => worktree.branch === branch);
  if (first === undefined) return { kind: 'nowhere' };
  if (second === undefined) return { kind: 'at', path: first.path, tip: first.commit };
  return {
    kind: 'busy',
    path: second.path,
    why: `${branch} is checked out twice: in ${first.path} and in ${second.path}`,
    hint: `detach one of the checkouts: git -C ${shellWord(second.path)} switch --detach`,
  };
}

/** Whether a worktree other than the one at `except` has the branch checked out. The caller must hold the lock `worktrees`. */
export async function isCheckedOut(repository: Repository, branch: string, except: string): Promise<boolean> {
  const worktrees = await allWorktrees(repository);
  return worktrees.some(worktree => worktree.branch === branch && worktree.path !== except);
}

/** Finds the worktree that rebases a branch. HEAD is detached there, and the end of the rebase moves the branch. */
async function rebaseOf(
  { git }: Repository,
  branch: string,
  worktrees: readonly WorktreeEntry[],
): Promise<string | undefined> {
  for (const { path, commit, branch: current, label } of worktrees) {
    if (commit === undefined || current !== undefined || label?.kind === 'landing') continue;
    const inside = git.with({ cwd: path });
    const { code, stdout } = await inside.run(['rev-parse', '--path-format=absolute', '--git-dir']);
    const names = ['rebase-merge', 'rebase-apply'].map(state =>
      code === 0 ? readIfThere(join(withoutNewline(stdout), state, 'head-name'))?.trim() : undefined,
    );
    if (names.includes(`refs/heads/${branch}`)) return path;
  }
  return undefined;
}
