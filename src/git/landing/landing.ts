import type { LandedCommit } from '../commits.ts';
import { printableList, shellWord } from '../names.ts';
import type { CheckoutBlocked } from './move-branch.ts';

/**
 * The landing protocol. `lock` comes first. Then `prepare`, `verify` and `move` run until one of them settles the landing,
 * and repeat if the target moves meanwhile. `unlock` comes last. Each phase is one effect with plain data as its result,
 * so other processes may act between any two phases.
 *
 * The source is the branch or commit with the work. The target is the branch that the work lands on.
 */
export interface LandingSteps {
  /** Waits until no other process lands in the repository. */
  lock(): Promise<LockResult>;
  /** Rebases the work onto the target without moving a branch. */
  prepare(): Promise<PrepareResult>;
  /** Checks the rebased work. Without this phase, all work passes. */
  readonly verify?: ((ready: ReadyLanding) => Promise<VerifyResult>) | undefined;
  /** Moves the target, provided that it has not moved since `prepare` and that the caller still owns the work. */
  move(ready: ReadyLanding): Promise<MoveEnd>;
  /** Releases the lock. Called even if the lock was never acquired. */
  unlock(): Promise<void>;
}

/** The protocol for work that a person or another tool lands: `confirm` replaces `move`. */
interface HandOverSteps extends Omit<LandingSteps, 'move'> {
  /** Checks that the target has not moved since `prepare` and that the caller still owns the work. */
  confirm(ready: ReadyLanding): Promise<ConfirmEnd>;
}

export interface LockResult {
  /** Fencing token. Greater than the token of every earlier holder of the lock. */
  readonly token: number;
}

export type PrepareResult =
  | ReadyLanding
  /** The target, at this commit, already has all of the work. */
  | {
      readonly kind: 'nothing';
      readonly commit: string;
      /** Landing that moved the target to this work before. */
      readonly landed?: LandedEarlier | undefined;
    }
  | LandingConflict
  | CheckoutBlocked;

/** An earlier landing of the same work, whose end may not have been recorded. */
export interface LandedEarlier {
  /** Tip of the target after the landing. */
  readonly commit: string;
  /** Tip of the target before the landing. */
  readonly from: string;
  /** Landed commits, oldest first. */
  readonly commits: readonly LandedCommit[];
}

/** Work that was rebased onto the target. */
export interface ReadyLanding {
  readonly kind: 'ready';
  /** Tip of the target, on which the rebased work is based. */
  readonly from: string;
  /** Tip of the source. */
  readonly tip: string;
  /** Tip of the rebased work. */
  readonly commit: string;
  /** Rebased commits, oldest first. `undefined` if the work has merges, which have no single order. */
  readonly commits?: readonly LandedCommit[] | undefined;
  /** Changes of protected files, unless the target lets them land without an approval. */
  readonly protected?: ProtectedWork | undefined;
}

/** Changes of files that decide which code runs later. */
export interface ProtectedWork {
  readonly files: readonly ProtectedFile[];
  /** Patch of these files for people to read, up to a limit. */
  readonly diff: string;
}

export interface ProtectedFile {
  readonly path: string;
  /** Mode and object id after the change; zeros if the file was deleted. */
  readonly to: string;
}

interface LandingConflict {
  readonly kind: 'conflict';
  readonly files: readonly string[];
  /** Subject of the first commit that conflicts. */
  readonly subject: string;
  /** Tip of the target. */
  readonly onto: string;
  /** Path of the worktree that has the source checked out. */
  readonly workAt?: string | undefined;
}

export type VerifyResult =
  | { readonly passed: true }
  | {
      readonly passed: false;
      /** End of the output. */
      readonly output: string;
      /** Path of the worktree that has the source checked out. */
      readonly workAt?: string | undefined;
    };

export type ConfirmEnd =
  | { readonly kind: 'confirmed' }
  /** The target has moved, or another process has taken over the lock. */
  | { readonly kind: 'lost' }
  /** Another process has taken over the work. */
  | { readonly kind: 'fenced' };

export type MoveEnd =
  | {
      readonly kind: 'moved';
      /** Path of the checkout of the target, which was updated too. */
      readonly checkout?: string | undefined;
      readonly commits: readonly LandedCommit[];
      /** Whether the lock was still held after the move, so that no other process landed meanwhile. */
      readonly wasAlone: boolean;
    }
  /** The target has moved, or another process has taken over the lock. */
  | { readonly kind: 'lost' }
  /** Another process has taken over the work. */
  | { readonly kind: 'fenced' }
  | CheckoutBlocked;

/** Result of a landing. */
export type Landing =
  | {
      readonly kind: 'landed';
      readonly target: string;
      /** Tip of the target after the landing. */
      readonly commit: string;
      /** Tip of the target before the landing. */
      readonly from: string;
      /** Landed commits, oldest first. */
      readonly commits: readonly LandedCommit[];
      /** Subjects of the landed commits. */
      readonly subjects: readonly string[];
      /** Path of the checkout of the target, which was updated too. */
      readonly checkout: string | undefined;
      /** Fencing token of the lock. Grows with every landing. */
      readonly token: number;
      /** Whether the lock was still held after the move, so that no other process landed meanwhile. */
      readonly wasAlone: boolean;
    }
  | NothingToLand
  | LandingRefused;

/** The target already has all of the work. */
interface NothingToLand {
  readonly kind: 'nothing-to-land';
  readonly target: string;
  /** Tip of the target. */
  readonly commit: string;
  /** Landing that moved the target to this work before. */
  readonly landed?: LandedEarlier | undefined;
}

/** Result of preparing work that a person or another tool lands. */
export type HandOver =
  | { readonly kind: 'ready-to-land'; readonly target: string; readonly commit: string }
  | NothingToLand
  | LandingRefused;

/** No branch has moved, and the work stays on the source. */
export type LandingRefused = {
  readonly target: string;
  readonly why: string;
  /** Next action, with the command to type. */
  readonly hint: string;
} & (
  | {
      readonly kind: 'conflict';
      readonly files: readonly string[];
      /** Subject of the first commit that conflicts. */
      readonly subject: string;
      /** Tip of the target. */
      readonly onto: string;
    }
  | { readonly kind: 'verify-failed'; readonly output: string; readonly commit: string }
  | { readonly kind: 'lost-the-race'; readonly attempts: number }
  /** Another process has taken over the work. */
  | { readonly kind: 'fenced' }
  /** The work passed, but it changes protected files, and a person has not approved that. */
  | ({ readonly kind: 'needs-approval' } & ProtectedWork)
  | { readonly kind: 'main-checkout-in-the-way'; readonly path: string; readonly files: readonly string[] }
);

/** Source and target of a landing. */
export interface LandingCourse {
  readonly source: { readonly branch: string } | { readonly commit: string };
  /** Branch that the work lands on. */
  readonly target: string;
  /** Changes of protected files that a person has approved. Defaults to none. */
  readonly approved?: 'everything' | readonly ProtectedFile[] | undefined;
  /** Number of attempts when other processes keep moving the target. Defaults to 5. */
  readonly maxAttempts?: number | undefined;
}

const outputLimit = 8 * 1024;

/**
 * Lands finished work: rebases it onto the target, verifies it, and fast-forwards the target unless it has moved.
 * A commit that has passed is not verified again. Rethrows the error of a phase after releasing the lock.
 */
export function landing(steps: LandingSteps, course: LandingCourse): Promise<Landing> {
  const { target } = course;
  return underLock<Landing>(steps, course, async (ready, token) => {
    const moved = await steps.move(ready);
    switch (moved.kind) {
      case 'lost':
        return 'retry';
      case 'in-the-way':
        return checkoutBlocked(target, moved);
      case 'fenced':
        return takenOver(target);
      case 'moved': {
        const { commits, checkout, wasAlone } = moved;
        const { commit, from } = ready;
        const subjects = commits.map(({ subject }) => subject);
        return { kind: 'landed', target, commit, from, commits, subjects, checkout, token, wasAlone };
      }
    }
  });
}

/** Runs the same protocol up to the move, which is left to a person or another tool. */
export function handingOver(steps: HandOverSteps, course: LandingCourse): Promise<HandOver> {
  const { target } = course;
  return underLock<HandOver>(steps, course, async ready => {
    const confirmed = await steps.confirm(ready);
    switch (confirmed.kind) {
      case 'lost':
        return 'retry';
      case 'fenced':
        return takenOver(target);
      case 'confirmed':
        return { kind: 'ready-to-land', target, commit: ready.commit };
    }
  });
}

type Steps = Omit<LandingSteps, 'move'>;
/** Last phase of the protocol. Returns `retry` if the target has moved. */
type LastStep<End> = (ready: ReadyLanding, token: number) => Promise<End | 'retry'>;

async function underLock<End>(
  steps: Steps,
  course: LandingCourse,
  last: LastStep<End>,
): Promise<End | NothingToLand | LandingRefused> {
  try {
    const { token } = await steps.lock();
    return await attemptLanding(steps, course, ready => last(ready, token));
  } finally {
    // `lock` may reject because of a cancellation and acquire the lock all the same.
    await steps.unlock();
  }
}

async function attemptLanding<End>(
  steps: Steps,
  course: LandingCourse,
  last: (ready: ReadyLanding) => Promise<End | 'retry'>,
): Promise<End | NothingToLand | LandingRefused> {
  const { target, maxAttempts = 5 } = course;
  let verified: string | undefined;
  for (let attempts = 1; attempts <= maxAttempts; attempts++) {
    const prepared = await steps.prepare();
    if (prepared.kind === 'nothing') {
      const { commit, landed } = prepared;
      return { kind: 'nothing-to-land', target, commit, ...(landed && { landed }) };
    }
    if (prepared.kind === 'conflict') return conflict(course, prepared);
    if (prepared.kind === 'in-the-way') return checkoutBlocked(target, prepared);
    const { commit } = prepared;
    if (steps.verify && verified !== commit) {
      const verdict = await steps.verify(prepared);
      if (!verdict.passed) return verifyFailed(course, commit, verdict);
      verified = commit;
    }
    if (prepared.protected && !isApproved(prepared.protected, course))
      return unapproved(target, prepared.protected);
    const end = await last(prepared);
    if (end !== 'retry') return end;
  }
  return {
    kind: 'lost-the-race',
    target,
    attempts: maxAttempts,
    why: `${target} moved ${maxAttempts} times during the landing`,
    hint: `land again when ${target} changes less often`,
  };
}

/** An approval covers the approved contents only: a file that has changed since needs another one. */
const isApproved = ({ files }: ProtectedWork, { approved = [] }: LandingCourse): boolean =>
  approved === 'everything' ||
  files.every(({ path, to }) => approved.some(file => file.path === path && file.to === to));

function unapproved(target: string, work: ProtectedWork): LandingRefused {
  return {
    kind: 'needs-approval',
    target,
    ...work,
    why: `landing on ${target} changes protected files: ${printableList(work.files.map(({ path }) => path))}`,
    hint: 'a person must approve the changes, because these files decide which code runs later',
  };
}

const checkoutBlocked = (target: string, blocked: CheckoutBlocked): LandingRefused => ({
  ...blocked,
  kind: 'main-checkout-in-the-way',
  target,
});

const takenOver = (target: string): LandingRefused => ({
  kind: 'fenced',
  target,
  why: 'another process took over the work during the landing',
  hint: 'nothing to do: the new owner lands the work',
});

function conflict(
  { source, target }: LandingCourse,
  { files, subject, onto, workAt }: LandingConflict,
): LandingRefused {
  return {
    kind: 'conflict',
    target,
    files,
    subject,
    onto,
    why: `cannot rebase ${JSON.stringify(subject)} onto ${target}: conflicts in ${printableList(files)}`,
    hint: `resolve the conflicts, then land again: ${gitInSource(source, workAt)} rebase ${shellWord(target)}`,
  };
}

function verifyFailed(
  { source, target }: LandingCourse,
  commit: string,
  { output, workAt }: Extract<VerifyResult, { passed: false }>,
): LandingRefused {
  return {
    kind: 'verify-failed',
    target,
    commit,
    output: output.slice(-outputLimit),
    why: `verification failed after rebasing onto ${target}`,
    hint: `commit a fix, then land again; to see the changes: ${gitInSource(source, workAt)} diff ${shellWord(`${target}...`)}`,
  };
}

/** Returns the beginning of a git command that runs where the source is checked out. */
function gitInSource(source: LandingCourse['source'], workAt: string | undefined): string {
  if (!('branch' in source)) return `git switch --create work ${shellWord(source.commit)} && git`;
  return workAt === undefined
    ? `git switch ${shellWord(source.branch)} && git`
    : `git -C ${shellWord(workAt)}`;
}
