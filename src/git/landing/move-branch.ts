import { type BranchCheckout, type CheckoutRequest, checkoutOfBranch } from '../checkout-of-branch.ts';
import { type Git, lastLines } from '../git.ts';
import { branchTip } from '../refs.ts';
import { uncommittedFiles } from '../status.ts';
import { printable, shellWord } from '../words.ts';

export interface Move extends CheckoutRequest {
  readonly from: string;
  /** A descendant of `from`. */
  readonly to: string;
  /** Asked when all else is known to be in order, right before the branch moves. */
  readonly mayMove?: (() => Promise<boolean>) | undefined;
}

export type Moved =
  | { readonly kind: 'moved'; readonly checkout: string | undefined }
  /** The branch is not at `from` any more. */
  | { readonly kind: 'lost' }
  /** It may not be moved any more. */
  | { readonly kind: 'fenced' }
  | CheckoutInTheWay;

/** The branch is checked out where moving it would overwrite something, or where something is unfinished. */
export interface CheckoutInTheWay {
  readonly kind: 'in-the-way';
  readonly path: string;
  readonly why: string;
  /** What to type. */
  readonly hint: string;
  readonly files: readonly string[];
}

/**
 * Whether the move would be refused, as far as can be told without touching anything: files that it changes are changed,
 * or there without being tracked. To be asked before anything expensive is done.
 */
export async function obstacle(move: Move): Promise<CheckoutInTheWay | undefined> {
  const checkout = await checkoutOfBranch(move);
  if (checkout.kind !== 'at') return checkout.kind === 'busy' ? busy(checkout) : undefined;
  const files = await overlap(move.repository.git.with({ cwd: checkout.path }), move);
  return files.length === 0 ? undefined : overwriting(checkout.path, { branch: move.branch, files });
}

/**
 * Fast-forwards a branch, if it still is where it was. Where it is checked out, index and files follow, as after
 * `git pull --ff-only`: other uncommitted changes stay, and nothing is overwritten.
 */
export async function moveBranch(move: Move): Promise<Moved> {
  const { repository, branch, from } = move;
  const checkout = await checkoutOfBranch(move);
  if (checkout.kind === 'busy') return busy(checkout);
  const tip = await branchTip(repository, branch);
  if (tip !== from) return { kind: 'lost' };
  if (move.mayMove && !(await move.mayMove())) return { kind: 'fenced' };
  return checkout.kind === 'nowhere' ? moveRef(move) : moveCheckout(move, checkout.path);
}

async function moveRef({ repository: { git }, branch, from, to }: Move): Promise<Moved> {
  const ref = `refs/heads/${branch}`;
  const args = ['update-ref', '--no-deref', '-m', 'reprise: land', ref, to, from];
  const { code } = await git.run(args, { hooks: 'skip' });
  // A lock that another command held for a moment is a lost race like any other.
  return code === 0 ? { kind: 'moved', checkout: undefined } : { kind: 'lost' };
}

/**
 * One git process moves files, index and branch. It goes on if this process is killed, and it takes the locks that keep
 * the user's own git away.
 */
async function moveCheckout({ repository, branch, from, to }: Move, path: string): Promise<Moved> {
  const git = repository.git.with({ cwd: path, env: { GIT_REFLOG_ACTION: 'reprise: land' } });
  const args = ['merge', '--ff-only', '--no-overwrite-ignore', '--no-autostash', '--no-stat', '--quiet', to];
  const { code, stderr } = await git.run(args, { hooks: 'skip' });
  if (code === 0) return { kind: 'moved', checkout: path };
  if ((await branchTip(repository, branch)) !== from) return { kind: 'lost' };
  const files = await overlap(git, { from, to });
  if (files.length > 0) return overwriting(path, { branch, files });
  return {
    kind: 'in-the-way',
    path,
    why: `git cannot fast-forward ${branch} in ${path}: ${lastLines(stderr)}`,
    hint: `see for yourself: git -C ${shellWord(path)} status`,
    files: [],
  };
}

async function overlap(git: Git, { from, to }: { from: string; to: string }): Promise<readonly string[]> {
  const uncommitted = await uncommittedFiles(git);
  if (uncommitted.length === 0) return [];
  const output = await git.ok(['diff', '--name-only', '-z', '--no-renames', '--no-ext-diff', from, to, '--']);
  const changed = new Set(output.split('\0'));
  return uncommitted.filter(file => changed.has(file));
}

const busy = ({ path, why, hint }: Extract<BranchCheckout, { kind: 'busy' }>): CheckoutInTheWay => ({
  kind: 'in-the-way',
  path,
  why,
  hint,
  files: [],
});

export const overwriting = (
  path: string,
  { branch, files }: { branch: string; files: readonly string[] },
): CheckoutInTheWay => ({
  kind: 'in-the-way',
  path,
  why: `${branch} is checked out in ${path}, and landing would overwrite uncommitted changes there: ${files.map(printable).join(', ')}`,
  hint: `put them aside, then land again: git -C ${shellWord(path)} stash push --include-untracked`,
  files,
});
