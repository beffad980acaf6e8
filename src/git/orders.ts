import type { Lease } from '../store/index.ts';
import type { ShellCommand } from '../workflow/index.ts';
import type { ReadyLanding } from './landing/landing.ts';
import type { WorkFolder } from './workspace/save.ts';

/** Identity of a landing in all of its effects. The lock is held under the key until it is released. */
interface LandingRef {
  readonly key: string;
  readonly lease: Lease;
}

/** Arguments of `land.lock`, which returns `LockResult`. `land.unlock` takes only the key. */
export interface LockOrder extends LandingRef {
  readonly unit: WorkUnit;
}

/** Arguments of `land.prepare`, which returns `PrepareResult`. */
export interface PrepareOrder extends LandingRef {
  /** Source branch. */
  readonly branch: string;
  /** Target branch. */
  readonly onto: string;
  /** Whether the target will not be moved, so that its checkout cannot block the landing. */
  readonly leavesBranch?: boolean | undefined;
}

/** Arguments of `land.verify`, which returns `VerifyResult`. */
export interface VerifyOrder extends LandingRef {
  readonly runId: string;
  readonly unit: WorkUnit;
  /** Source branch. */
  readonly branch: string;
  /** Tip of the rebased work. */
  readonly commit: string;
  readonly command: ShellCommand;
  readonly env: Readonly<Record<string, string>>;
}

/** Arguments of `land.move`, which returns `MoveEnd`, and of `land.confirm`, which returns `ConfirmEnd`. */
export interface MoveOrder extends LandingRef {
  readonly runId: string;
  /** Source branch. */
  readonly branch: string;
  /** Target branch. */
  readonly onto: string;
  readonly ready: ReadyLanding;
  /** Claim of the task, which must still be held to land. */
  readonly claim?: { readonly task: string; readonly token: number } | undefined;
}

export interface WorkUnit {
  /** Path of the step. */
  readonly step: string;
  /** Index of a fanned-out copy. */
  readonly worker?: number | undefined;
  readonly attempt: number;
  /** Task that the work belongs to, if it outlives the step. Recordings are matched by it, whichever worker runs it. */
  readonly task?: string | undefined;
}

export interface WorkspaceOrder extends WorkFolder {
  readonly runId: string;
  readonly lease: Lease;
  readonly unit: WorkUnit;
}

export interface PreparedWorkspace {
  /** Whether the workspace existed, possibly with work in it. */
  readonly isFound: boolean;
  /** Whether the setup commands have run in it. */
  readonly isSetUp: boolean;
  /** Whether the lock was held throughout, so that no other process created or removed a worktree meanwhile. */
  readonly wasAlone: boolean;
}
