import { RepriseError } from '../core/errors.ts';
import type { Owner } from '../store/port.ts';
import { noteLanded } from './branch-records.ts';
import type { Git } from './git.ts';
import { type CheckoutInTheWay, moveBranch, obstacle } from './move-branch.ts';
import { isBranchName } from './names.ts';
import { branchTip } from './ref-files.ts';
import { type LandedCommit, replayCommits } from './replay-commits.ts';
import { type Repository, resolveCommit } from './repository.ts';
import { type HeldLock, type LockRequest, withRepositoryLock } from './repository-lock.ts';
import { withScratchWorktree } from './scratch-worktree.ts';
import { printable, shellWord } from './words.ts';

export interface LandRequest {
  readonly repository: Repository;
  readonly owner: Owner;
  readonly source: { readonly branch: string } | { readonly commit: string };
  /** The branch to land on. */
  readonly onto: string;
  readonly verify?: Verification | undefined;
  /** How often to begin again when somebody else moves the branch in the meantime. */
  readonly maxAttempts?: number | undefined;
  /**
   * Whether the work still is the caller's to land: somebody else may have taken it over while it was verified. Asked with
   * the lock held, right before the branch moves, and never after it has.
   */
  readonly mayLand?: (() => Promise<boolean>) | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onWait?: LockRequest['onWait'];
}

/** What has to pass before anything moves. */
export interface Verification {
  /** A folder that does not exist: the result is checked out there for as long as it is verified. */
  readonly path: string;
  /** Patterns of ignored files to copy there. */
  readonly include?: readonly string[] | undefined;
  readonly run: (checkout: { readonly path: string; readonly commit: string }) => Promise<Verdict>;
}

export interface Verdict {
  readonly passed: boolean;
  /** The end of what the command printed. */
  readonly output: string;
}

/** What came of it. `branch` is the branch to land on. */
export type Landing =
  | {
      readonly kind: 'landed';
      readonly branch: string;
      readonly commit: string;
      /** Where the branch was before. */
      readonly from: string;
      /** That came onto the branch, oldest first. */
      readonly commits: readonly LandedCommit[];
      /** Of those commits. */
      readonly subjects: readonly string[];
      /** Where the branch is checked out, and has been brought up to date. */
      readonly checkout: string | undefined;
      /** Of the lock: grows from landing to landing. */
      readonly token: number;
      /** Nobody else could land in the repository meanwhile. */
      readonly wasAlone: boolean;
    }
  /** All of it is on the branch already. */
  | { readonly kind: 'nothing-to-land'; readonly branch: string; readonly commit: string }
  | LandingRefused;

/** Nothing has moved, and the work stays where it is. */
export type LandingRefused = {
  readonly branch: string;
  readonly why: string;
  /** What to do or type next. */
  readonly hint: string;
} & (
  | {
      readonly kind: 'conflict';
      readonly files: readonly string[];
      /** Of the commit that does not fit. */
      readonly subject: string;
      /** Where the branch was. */
      readonly onto: string;
    }
  | { readonly kind: 'verify-failed'; readonly output: string; readonly commit: string }
  | { readonly kind: 'lost-the-race'; readonly attempts: number }
  /** Somebody else has the work now. */
  | { readonly kind: 'fenced' }
  | { readonly kind: 'main-checkout-in-the-way'; readonly path: string; readonly files: readonly string[] }
);

const outputLimit = 8 * 1024;

/**
 * Brings finished work onto a branch: its commits are replayed on top of it, verified, and the branch is fast-forwarded
 * if it has not moved since. One landing at a time per repository, across processes. Until the last step only objects
 * and a scratch folder are written; the work itself is never changed. Throws CANNOT_LAND if a branch is missing.
 */
export function land(request: LandRequest): Promise<Landing> {
  return withRepositoryLock({ ...request, name: 'land' }, held =>
    attempt({ ...request, repository: held.repository }, held),
  );
}

async function attempt(request: LandRequest, held: HeldLock): Promise<Landing> {
  const { repository, source, onto, maxAttempts = 5, signal } = request;
  const { git } = repository;
  let verified: string | undefined;
  for (let attempts = 1; attempts <= maxAttempts; attempts++) {
    signal?.throwIfAborted();
    const [from, tip] = await inOrder(targetTip(repository, onto), sourceTip(repository, source));
    const replayed = await replayCommits(git, { onto: from, tip });
    if (replayed.kind === 'conflict') return conflict(request, { ...replayed, onto: from });
    if (replayed.kind === 'nothing') {
      noteSource(repository, { source, tip, commit: from });
      return { kind: 'nothing-to-land', branch: onto, commit: from };
    }
    const { commit } = replayed;
    const move = { ...request, branch: onto, from, to: commit, mayMove: request.mayLand };
    const early = await obstacle(move);
    if (early) return inTheWay(onto, early);
    if (request.verify && verified !== commit) {
      const verdict = await verify(request, request.verify, commit);
      if (!verdict.passed) return verifyFailed(request, { commit, output: verdict.output });
      verified = commit;
    }
    signal?.throwIfAborted();
    // Somebody who took this process for dead may be landing by now.
    const moved = held.isHeld() ? await moveBranch(move) : { kind: 'lost' as const };
    switch (moved.kind) {
      case 'lost':
        break;
      case 'in-the-way':
        return inTheWay(onto, moved);
      case 'fenced':
        return takenOver(onto);
      case 'moved': {
        noteSource(repository, { source, tip, commit });
        const commits = replayed.commits ?? (await commitsBetween(git, from, commit));
        const subjects = commits.map(({ subject }) => subject);
        const { checkout } = moved;
        const { token } = held;
        const wasAlone = held.isHeld();
        return { kind: 'landed', branch: onto, commit, from, commits, subjects, checkout, token, wasAlone };
      }
    }
  }
  return {
    kind: 'lost-the-race',
    branch: onto,
    attempts: maxAttempts,
    why: `${onto} moved ${maxAttempts} times while this was landing`,
    hint: 'land again when less is going on',
  };
}

const inTheWay = (branch: string, found: CheckoutInTheWay): Landing => ({
  ...found,
  kind: 'main-checkout-in-the-way',
  branch,
});

const takenOver = (branch: string): Landing => ({
  kind: 'fenced',
  branch,
  why: 'the work was taken over by somebody else while it was landing',
  hint: 'nothing is to be done here: whoever has it now lands it',
});

async function conflict(
  request: LandRequest,
  { files, subject, onto }: { files: readonly string[]; subject: string; onto: string },
): Promise<Landing> {
  const { onto: branch } = request;
  return {
    kind: 'conflict',
    branch,
    files,
    subject,
    onto,
    why: `${JSON.stringify(subject)} does not fit onto ${branch}: ${files.map(printable).join(', ')}`,
    hint: `solve the conflicts, then land again: ${await workOn(request)} rebase ${shellWord(branch)}`,
  };
}

async function verifyFailed(
  request: LandRequest,
  { commit, output }: { commit: string; output: string },
): Promise<Landing> {
  const { onto: branch } = request;
  return {
    kind: 'verify-failed',
    branch,
    commit,
    output: output.slice(-outputLimit),
    why: `what would be ${branch} did not pass its verification`,
    hint: `see what changed, commit a fix, then land again: ${await workOn(request)} diff ${shellWord(`${branch}...`)}`,
  };
}

/** How to type a git command where the work is. */
async function workOn({ repository: { git }, source }: LandRequest): Promise<string> {
  if (!('branch' in source)) return `git switch --create work ${shellWord(source.commit)} && git`;
  const { branch } = source;
  const path = await git.line(['for-each-ref', '--format=%(worktreepath)', `refs/heads/${branch}`]);
  return path === '' ? `git switch ${shellWord(branch)} && git` : `git -C ${shellWord(path)}`;
}

const verify = (request: LandRequest, { path, include, run }: Verification, commit: string) =>
  withScratchWorktree({ ...request, path, commit, include }, () => run({ path, commit }));

/** If this does not come about, the branch is merely kept for longer than needed. */
function noteSource(
  repository: Repository,
  { source, tip, commit }: { source: LandRequest['source']; tip: string; commit: string },
): void {
  if ('branch' in source) noteLanded(repository, { branch: source.branch, tip, commit });
}

async function sourceTip(repository: Repository, source: LandRequest['source']): Promise<string> {
  const [what, name] = 'branch' in source ? ['branch', source.branch] : ['commit', source.commit];
  const tip = what === 'branch' ? await tipOf(repository, name) : await resolveCommit(repository.git, name);
  if (tip !== undefined) return tip;
  throw new RepriseError('CANNOT_LAND', `there is no ${what} ${show(name)}`);
}

const tipOf = async (repository: Repository, branch: string): Promise<string | undefined> =>
  isBranchName(branch) ? branchTip(repository, branch) : undefined;

async function targetTip(repository: Repository, branch: string): Promise<string> {
  const tip = await tipOf(repository, branch);
  if (tip !== undefined) return tip;
  const { stdout } = await repository.git.run(['symbolic-ref', '--quiet', '--short', 'HEAD']);
  const current = stdout.trim();
  if (current === branch) {
    throw new RepriseError('CANNOT_LAND', `${show(branch)} has no commit yet`, {
      hint: 'make one first: git commit --allow-empty -m "Begin"',
    });
  }
  throw new RepriseError('CANNOT_LAND', `there is no branch ${show(branch)} to land on`, {
    hint:
      current === ''
        ? `make it first: git branch ${shellWord(branch)}`
        : `the current branch is ${current}: land on that, or make the other: git branch ${shellWord(branch)}`,
  });
}

async function commitsBetween(git: Git, from: string, to: string): Promise<readonly LandedCommit[]> {
  const output = await git.ok(['log', '--reverse', '-z', '--format=%H %s', `${from}..${to}`]);
  return output
    .split('\0')
    .filter(line => line !== '')
    .map(line => ({ commit: line.slice(0, line.indexOf(' ')), subject: line.slice(line.indexOf(' ') + 1) }));
}

/** Both at once; if both fail, the first is what is said. */
async function inOrder<A, B>(first: Promise<A>, second: Promise<B>): Promise<readonly [A, B]> {
  second.catch(() => {});
  return [await first, await second];
}

const show = (name: string): string => (isBranchName(name) ? name : JSON.stringify(name));
