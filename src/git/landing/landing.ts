import type { LandedCommit } from '../commits.ts';
import { printable, shellWord } from '../names.ts';
import type { CheckoutBlocked } from './move-branch.ts';

/**
 * A landing as a protocol: `lock`, then `prepare`, `verify` and `move` until one of them says how it ends, and `unlock`
 * at last. Each is one thing that happens, so that what others do can come between any two of them. All that they give
 * is data.
 */
export interface LandingSteps {
  /** Waits until nobody else lands in the repository. */
  lock(): Promise<LockResult>;
  /** Changes no branch. */
  prepare(): Promise<PrepareResult>;
  /** Without it nothing has to pass. */
  readonly verify?: ((ready: ReadyLanding) => Promise<VerifyResult>) | undefined;
  /** Moves the branch if it still is where it was, and the work still is the caller's to land. */
  move(ready: ReadyLanding): Promise<MoveEnd>;
  /** Also if the lock was never given. */
  unlock(): Promise<void>;
}

/** The same for work that somebody else is to land: in the place of `move`, a last look. */
interface HandOverSteps extends Omit<LandingSteps, 'move'> {
  /** Whether the branch still is where it was, and the work still is the caller's. */
  confirm(ready: ReadyLanding): Promise<ConfirmEnd>;
}

export interface LockResult {
  /** Greater than that of everybody who held the lock before. */
  readonly token: number;
}

export type PrepareResult =
  | ReadyLanding
  /** All of it is on the branch already, which is at this commit. */
  | { readonly kind: 'nothing'; readonly commit: string }
  | LandingConflict
  | CheckoutBlocked;

/** The work, on top of the branch to land on. */
export interface ReadyLanding {
  readonly kind: 'ready';
  /** Where that branch is. */
  readonly from: string;
  /** Of the work as it was made. */
  readonly tip: string;
  /** Of the work as it would land. */
  readonly commit: string;
  /** That would come onto the branch, oldest first; `undefined` if merges make that a matter of order. */
  readonly commits?: readonly LandedCommit[] | undefined;
}

interface LandingConflict {
  readonly kind: 'conflict';
  readonly files: readonly string[];
  /** Of the commit that does not fit. */
  readonly subject: string;
  /** Where the branch to land on is. */
  readonly onto: string;
  /** Where the branch with the work is checked out. */
  readonly workAt?: string | undefined;
}

export type VerifyResult =
  | { readonly passed: true }
  | {
      readonly passed: false;
      /** The end of what was printed. */
      readonly output: string;
      /** Where the branch with the work is checked out. */
      readonly workAt?: string | undefined;
    };

export type ConfirmEnd =
  | { readonly kind: 'confirmed' }
  /** The branch, or the lock, is somebody else's by now. */
  | { readonly kind: 'lost' }
  /** The work is somebody else's by now. */
  | { readonly kind: 'fenced' };

export type MoveEnd =
  | {
      readonly kind: 'moved';
      /** Where the branch is checked out, and has been brought up to date. */
      readonly checkout?: string | undefined;
      readonly commits: readonly LandedCommit[];
      /** Nobody else could land meanwhile. */
      readonly wasAlone: boolean;
    }
  /** The branch, or the lock, is somebody else's by now. */
  | { readonly kind: 'lost' }
  /** The work is somebody else's by now. */
  | { readonly kind: 'fenced' }
  | CheckoutBlocked;

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
  | NothingToLand
  | LandingRefused;

/** All of it is on the branch already. */
interface NothingToLand {
  readonly kind: 'nothing-to-land';
  readonly branch: string;
  readonly commit: string;
}

/** What came of making work ready for somebody else to land: it fits onto the branch, and passes. */
export type HandOver =
  | { readonly kind: 'ready-to-land'; readonly branch: string; readonly commit: string }
  | NothingToLand
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

/** What is landed where. */
export interface LandingCourse {
  readonly source: { readonly branch: string } | { readonly commit: string };
  /** The branch to land on. */
  readonly onto: string;
  /** How often to begin again when somebody else moves the branch in the meantime. */
  readonly maxAttempts?: number | undefined;
}

const outputLimit = 8 * 1024;

/**
 * Brings finished work onto a branch: its commits are replayed on top of it, verified, and the branch is fast-forwarded
 * if it has not moved since. What has passed is not verified again as long as it is the same commit. Throws what a step
 * throws, having given the lock back.
 */
export function landing(steps: LandingSteps, course: LandingCourse): Promise<Landing> {
  const { onto: branch } = course;
  return inTurn<Landing>(steps, course, async (ready, token) => {
    const moved = await steps.move(ready);
    switch (moved.kind) {
      case 'lost':
        return 'again';
      case 'in-the-way':
        return checkoutBlocked(branch, moved);
      case 'fenced':
        return takenOver(branch);
      case 'moved': {
        const { commits, checkout, wasAlone } = moved;
        const { commit, from } = ready;
        const subjects = commits.map(({ subject }) => subject);
        return { kind: 'landed', branch, commit, from, commits, subjects, checkout, token, wasAlone };
      }
    }
  });
}

/** The same up to the moment in which the branch would move: that is for somebody else to do. */
export function handingOver(steps: HandOverSteps, course: LandingCourse): Promise<HandOver> {
  const { onto: branch } = course;
  return inTurn<HandOver>(steps, course, async ready => {
    const confirmed = await steps.confirm(ready);
    switch (confirmed.kind) {
      case 'lost':
        return 'again';
      case 'fenced':
        return takenOver(branch);
      case 'confirmed':
        return { kind: 'ready-to-land', branch, commit: ready.commit };
    }
  });
}

type Steps = Omit<LandingSteps, 'move'>;
/** What is done with work that fits and has passed; `again` if somebody else has moved the branch. */
type LastStep<End> = (ready: ReadyLanding, token: number) => Promise<End | 'again'>;

async function inTurn<End>(
  steps: Steps,
  course: LandingCourse,
  last: LastStep<End>,
): Promise<End | NothingToLand | LandingRefused> {
  try {
    const { token } = await steps.lock();
    return await withLock(steps, course, ready => last(ready, token));
  } finally {
    // Also if the lock was not given: it may have come too late for whoever was cancelled while waiting for it.
    await steps.unlock();
  }
}

async function withLock<End>(
  steps: Steps,
  course: LandingCourse,
  last: (ready: ReadyLanding) => Promise<End | 'again'>,
): Promise<End | NothingToLand | LandingRefused> {
  const { onto: branch, maxAttempts = 5 } = course;
  let verified: string | undefined;
  for (let attempts = 1; attempts <= maxAttempts; attempts++) {
    const prepared = await steps.prepare();
    if (prepared.kind === 'nothing') return { kind: 'nothing-to-land', branch, commit: prepared.commit };
    if (prepared.kind === 'conflict') return conflict(course, prepared);
    if (prepared.kind === 'in-the-way') return checkoutBlocked(branch, prepared);
    const { commit } = prepared;
    if (steps.verify && verified !== commit) {
      const verdict = await steps.verify(prepared);
      if (!verdict.passed) return verifyFailed(course, commit, verdict);
      verified = commit;
    }
    const end = await last(prepared);
    if (end !== 'again') return end;
  }
  return {
    kind: 'lost-the-race',
    branch,
    attempts: maxAttempts,
    why: `${branch} moved ${maxAttempts} times while this was landing`,
    hint: 'land again when less is going on',
  };
}

const checkoutBlocked = (branch: string, found: CheckoutBlocked): LandingRefused => ({
  ...found,
  kind: 'main-checkout-in-the-way',
  branch,
});

const takenOver = (branch: string): LandingRefused => ({
  kind: 'fenced',
  branch,
  why: 'the work was taken over by somebody else while it was landing',
  hint: 'nothing is to be done here: whoever has it now lands it',
});

function conflict(
  { source, onto: branch }: LandingCourse,
  { files, subject, onto, workAt }: LandingConflict,
): LandingRefused {
  return {
    kind: 'conflict',
    branch,
    files,
    subject,
    onto,
    why: `${JSON.stringify(subject)} does not fit onto ${branch}: ${files.map(printable).join(', ')}`,
    hint: `solve the conflicts, then land again: ${workOn(source, workAt)} rebase ${shellWord(branch)}`,
  };
}

function verifyFailed(
  { source, onto: branch }: LandingCourse,
  commit: string,
  { output, workAt }: Extract<VerifyResult, { passed: false }>,
): LandingRefused {
  return {
    kind: 'verify-failed',
    branch,
    commit,
    output: output.slice(-outputLimit),
    why: `what would be ${branch} did not pass its verification`,
    hint: `see what changed, commit a fix, then land again: ${workOn(source, workAt)} diff ${shellWord(`${branch}...`)}`,
  };
}

/** How to type a git command where the work is. */
function workOn(source: LandingCourse['source'], workAt: string | undefined): string {
  if (!('branch' in source)) return `git switch --create work ${shellWord(source.commit)} && git`;
  return workAt === undefined
    ? `git switch ${shellWord(source.branch)} && git`
    : `git -C ${shellWord(workAt)}`;
}
