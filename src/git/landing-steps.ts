import type { LandedCommit } from './commits.ts';
import type { CheckoutInTheWay } from './landing/move-branch.ts';

/**
 * A landing as a protocol: `lock`, then `prepare`, `verify` and `move` until one of them says how it ends, and `unlock`
 * at last. Each is one thing that happens, so that what others do can come between any two of them. All that they give
 * is data.
 */
export interface LandingSteps {
  /** Waits until nobody else lands in the repository. */
  lock(): Promise<Locked>;
  /** Changes no branch. */
  prepare(): Promise<Prepared>;
  /** Without it nothing has to pass. */
  readonly verify?: ((ready: Ready) => Promise<Verified>) | undefined;
  /** Moves the branch if it still is where it was, and the work still is the caller's to land. */
  move(ready: Ready): Promise<MoveEnd>;
  /** Also if the lock was never given. */
  unlock(): Promise<void>;
}

/** The same for work that somebody else is to land: in the place of `move`, a last look. */
export interface HandOverSteps extends Omit<LandingSteps, 'move'> {
  /** Whether the branch still is where it was, and the work still is the caller's. */
  confirm(ready: Ready): Promise<ConfirmEnd>;
}

export interface Locked {
  /** Greater than that of everybody who held the lock before. */
  readonly token: number;
}

export type Prepared =
  | Ready
  /** All of it is on the branch already, which is at this commit. */
  | { readonly kind: 'nothing'; readonly commit: string }
  | Unfit
  | CheckoutInTheWay;

/** The work, on top of the branch to land on. */
export interface Ready {
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

export interface Unfit {
  readonly kind: 'conflict';
  readonly files: readonly string[];
  /** Of the commit that does not fit. */
  readonly subject: string;
  /** Where the branch to land on is. */
  readonly onto: string;
  /** Where the branch with the work is checked out. */
  readonly workAt?: string | undefined;
}

export type Verified =
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
  | CheckoutInTheWay;
