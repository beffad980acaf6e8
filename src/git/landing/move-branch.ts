import { lstatSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runProgram } from '../../process/index.ts';
import { syncPaths } from '../files.ts';
import { describeLock, type Git, lastLines, lockIn, withoutNewline } from '../git.ts';
import { printableList, shellWord } from '../names.ts';
import { branchTip } from '../refs.ts';
import { uncommittedFiles } from '../workspace/commit.ts';
import { type BranchCheckout, type CheckoutRequest, checkoutOfBranch } from '../workspace/worktree.ts';
import {
  type ChangedPath,
  changedPaths,
  exists,
  forgetMove,
  intendMove,
  undoMove,
} from './interrupted-move.ts';

interface MoveBranchRequest extends CheckoutRequest {
  /** Expected tip of the branch. */
  readonly from: string;
  /** New tip, a descendant of `from`. */
  readonly to: string;
  /** Source branch with its tip. */
  readonly work?: { readonly branch: string; readonly tip: string } | undefined;
  /** Called after all other checks, immediately before the branch moves. */
  readonly mayMove?: (() => Promise<boolean>) | undefined;
}

type MoveBranchResult =
  | { readonly kind: 'moved'; readonly checkout: string | undefined }
  /** The branch is no longer at `from`. */
  | { readonly kind: 'lost' }
  /** `mayMove` refused the move. */
  | { readonly kind: 'fenced' }
  | CheckoutBlocked;

/** A checkout of the branch has changes that the move would overwrite, or an unfinished operation such as a rebase. */
export interface CheckoutBlocked {
  readonly kind: 'in-the-way';
  readonly path: string;
  readonly why: string;
  /** Next action, with the command to type. */
  readonly hint: string;
  /** Files that the move would overwrite. */
  readonly files: readonly string[];
}

/**
 * Predicts, without writing anything, whether a checkout blocks the move, because a file that the move changes has
 * uncommitted changes or is untracked there. Called before expensive work such as a verification.
 */
export async function obstacle(move: MoveBranchRequest): Promise<CheckoutBlocked | undefined> {
  const checkout = await checkoutOfBranch(move);
  if (checkout.kind !== 'at') return checkout.kind === 'busy' ? busy(checkout) : undefined;
  const files = await overlap(move.repository.git.with({ cwd: checkout.path }), move);
  return files.length === 0 ? undefined : overwriting(checkout.path, { branch: move.branch, files });
}

/**
 * Fast-forwards a branch that is still at `from`. If it is checked out, its index and files follow, as after
 * `git pull --ff-only`: unrelated uncommitted changes stay, and no file is overwritten.
 */
export async function moveBranch(move: MoveBranchRequest): Promise<MoveBranchResult> {
  const { repository, branch, from } = move;
  const checkout = await checkoutOfBranch(move);
  if (checkout.kind === 'busy') return busy(checkout);
  const tip = checkout.kind === 'at' ? checkout.tip : await branchTip(repository, branch);
  if (tip !== from) return { kind: 'lost' };
  if (move.mayMove && !(await move.mayMove())) return { kind: 'fenced' };
  return checkout.kind === 'nowhere' ? moveRef(move) : moveCheckout(move, checkout.path);
}

async function moveRef({ repository, branch, from, to, work }: MoveBranchRequest): Promise<MoveBranchResult> {
  const { git } = repository;
  intendMove(repository, { branch, from, to, source: work });
  const ref = `refs/heads/${branch}`;
  const args = ['update-ref', '--no-deref', '-m', 'reprise: land', ref, to, from];
  const { code } = await git.run(args, { hooks: 'skip' });
  if (code !== 0) forgetMove(repository);
  // A ref lock that another git command holds for a moment is a lost race like any other.
  return code === 0 ? { kind: 'moved', checkout: undefined } : { kind: 'lost' };
}

/**
 * Moves files, index and branch with one git process. That process survives if this one is killed, and takes the locks
 * that keep out the user's own git commands. If it is killed too, the next landing undoes what it has done.
 */
async function moveCheckout(move: MoveBranchRequest, path: string): Promise<MoveBranchResult> {
  const { repository, branch, from, to, work } = move;
  const git = repository.git.with({ cwd: path, env: { GIT_REFLOG_ACTION: 'reprise: land' } });
  const [gitDir, changes] = await Promise.all([gitDirAt(git), changedPaths(git, from, to)]);
  const present = changes.flatMap(change =>
    change.before === undefined && exists(join(path, change.path)) ? change.path : [],
  );
  intendMove(repository, { branch, from, to, source: work, checkout: { path, gitDir, present } });
  // The user's options for merges into this branch could squash the work instead of moving the branch.
  const plain = ['-c', `branch.${branch}.mergeOptions=`];
  const args = ['merge', '--ff-only', '--no-overwrite-ignore', '--no-autostash', '--no-stat', '--quiet', to];
  const result = await git.run([...plain, ...args], { hooks: 'skip' });
  const tip = await branchTip(repository, branch);
  if (tip === to) {
    await syncFiles(git, changes);
    return { kind: 'moved', checkout: path };
  }
  if (tip !== from) {
    forgetMove(repository);
    return { kind: 'lost' };
  }
  const stderr = result.code === 0 ? `it reports success, but ${branch} has not moved` : result.stderr;
  return notMoved(move, { git, path, changes, present, stderr });
}

/** Number of files above which the whole file system is synced instead of each file. */
const maxSynced = 500;

/** Returns when the updated files survive a power loss, which would otherwise leave them empty. */
async function syncFiles({ cwd }: Git, changes: readonly ChangedPath[]): Promise<void> {
  const files = changes.flatMap(({ path, after }) => (after ? join(cwd, path) : []));
  if (files.length <= maxSynced) return syncPaths([...files, ...files.map(dirname)]);
  await runProgram(['sync', '--file-system', cwd], { cwd, env: { PATH: process.env['PATH'] } });
}

async function gitDirAt(git: Git): Promise<string> {
  const folder = join(git.cwd, '.git');
  if (lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) return folder;
  return withoutNewline(await git.ok(['rev-parse', '--path-format=absolute', '--git-dir']));
}

interface FailedMove {
  readonly git: Git;
  readonly path: string;
  readonly changes: readonly ChangedPath[];
  readonly present: readonly string[];
  readonly stderr: string;
}

/** Undoes what git has changed before it failed, for example because the disk is full. */
async function notMoved(
  { repository, branch, from, to }: MoveBranchRequest,
  { git, path, changes, present, stderr }: FailedMove,
): Promise<CheckoutBlocked> {
  const lock = lockIn(stderr);
  const blocked = { kind: 'in-the-way', path } as const;
  if (lock !== undefined) {
    forgetMove(repository);
    return { ...blocked, ...describeLock(lock), files: [] };
  }
  // Git checks all paths before it changes the first one, and then names those that it would overwrite.
  const isRefused = /would be overwritten|not uptodate|Aborting/.test(stderr);
  const kept = isRefused ? [] : await undoMove(git, { from, changes, present });
  forgetMove(repository);
  const files = await overlap(git, { from, to });
  if (isRefused && files.length > 0) return overwriting(path, { branch, files });
  const left =
    kept.length === 0 ? '' : `; not undone, because they have changed since: ${printableList(kept)}`;
  return {
    ...blocked,
    why: `git cannot fast-forward ${branch} in ${path}: ${lastLines(stderr)}${left}`,
    hint: `check the state of the checkout: git -C ${shellWord(path)} status`,
    files: kept,
  };
}

async function overlap(git: Git, { from, to }: { from: string; to: string }): Promise<readonly string[]> {
  const uncommitted = await uncommittedFiles(git);
  if (uncommitted.length === 0) return [];
  const output = await git.ok(['diff', '--name-only', '-z', '--no-renames', '--no-ext-diff', from, to, '--']);
  const changed = new Set(output.split('\0'));
  return uncommitted.filter(file => changed.has(file));
}

const busy = ({ path, why, hint }: Extract<BranchCheckout, { kind: 'busy' }>): CheckoutBlocked => ({
  kind: 'in-the-way',
  path,
  why,
  hint,
  files: [],
});

export const overwriting = (
  path: string,
  { branch, files }: { branch: string; files: readonly string[] },
): CheckoutBlocked => ({
  kind: 'in-the-way',
  path,
  why: `${branch} is checked out in ${path}, and landing would overwrite uncommitted changes there: ${printableList(files)}`,
  hint: `stash them, then land again: git -C ${shellWord(path)} stash push --include-untracked`,
  files,
});
