import { join } from 'node:path';
import { readIfThere } from '../files.ts';
import { type LockRequest, withRepositoryLock } from '../lock.ts';
import { shellWord } from '../names.ts';
import { type Repository, withoutNewline } from '../repository.ts';
import { allWorktrees, type WorktreeEntry } from './entries.ts';

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
