import type { Lease } from '../store/index.ts';
import type { ShellCommand } from '../workflow/index.ts';
import type { ReadyLanding } from './landing/landing.ts';
import type { WorkFolder } from './workspace/save.ts';

/** A landing under way, as all its effects name it; the lock is held under the key until it is given back. */
interface LandingRef {
  readonly key: string;
  readonly lease: Lease;
}

/** `land.lock` gives `LockResult`; `land.unlock` takes the key alone. */
export interface LockOrder extends LandingRef {
  readonly unit: WorkUnit;
}

/** `land.prepare` gives `PrepareResult`. */
export interface PrepareOrder extends LandingRef {
  /** With the work. */
  readonly branch: string;
  /** The branch to land on. */
  readonly onto: string;
  /** Somebody else is to land it, so that no checkout of that branch can be in the way. */
  readonly leavesBranch?: boolean | undefined;
}

/** `land.verify` gives `VerifyResult`. */
export interface VerifyOrder extends LandingRef {
  readonly runId: string;
  readonly unit: WorkUnit;
  readonly branch: string;
  readonly commit: string;
  readonly command: ShellCommand;
  readonly env: Readonly<Record<string, string>>;
}

/** `land.move` gives `MoveEnd`, and `land.confirm` gives `ConfirmEnd`. */
export interface MoveOrder extends LandingRef {
  readonly runId: string;
  readonly branch: string;
  readonly onto: string;
  readonly ready: ReadyLanding;
  /** Without which it may not be landed any more. */
  readonly claim?: { readonly task: string; readonly token: number } | undefined;
}

export interface WorkUnit {
  /** Path of the step. */
  readonly step: string;
  readonly worker?: number | undefined;
  readonly attempt: number;
  /** What it is done for, if that outlives the step: recordings are found by it, whoever does the work. */
  readonly task?: string | undefined;
}

export interface WorkspaceOrder extends WorkFolder {
  readonly runId: string;
  readonly lease: Lease;
  readonly unit: WorkUnit;
}

export interface PreparedWorkspace {
  /** It was there, with whatever had been done in it. */
  readonly isFound: boolean;
  /** The setup has been run in it. */
  readonly isSetUp: boolean;
  /** Nobody else could make or remove a worktree meanwhile. */
  readonly wasAlone: boolean;
}
