import type { EventOf, HistoryEvent, Json, NewEvent, Timestamp } from '../core/index.ts';
import type { ClaimStore } from './claims.ts';
import type { WorkerRecord, WorkerRegistry } from './runs.ts';

/**
 * Storage of histories. A run has one owner at a time. Every write of the owner names its epoch, so the store itself
 * fences out a process that has lost the run. All other processes write to the inbox.
 * All times come from the caller: a store has no clock.
 *
 * A store may hold several projects and is opened for one of them: it creates runs, claims and workers of that project,
 * and lists no others. Opened for all projects, it lists every one with its project. Run ids are unique across projects.
 */
export interface EventStore {
  /**
   * Creates a run, owned by `owner` with epoch 1, together with its first events, in one transaction.
   * Throws SEQUENCE_CONFLICT if the id is taken.
   */
  createRun(run: NewRun): Promise<Lease>;

  /**
   * Acquires the run if it was released, or if its owner is the one named in `provablyDead`. Never because of the time.
   * Increments the epoch, which fences out the previous owner. Throws RUN_NOT_FOUND.
   */
  acquire(request: AcquireRequest): Promise<AcquireResult>;

  /** Extends the lease. Returns `false` if the caller no longer owns the run. */
  renew(runId: string, lease: Lease, expiresAt: Timestamp): Promise<boolean>;

  /**
   * Releases the run, so any process can acquire it at once. Keeps its status unless one is given.
   * Does nothing if the caller no longer owns the run.
   */
  release(runId: string, lease: Lease, status?: RunStatus): Promise<void>;

  /**
   * Returns whether the caller still owns the run. Call it right before an action that no store guards.
   * Returns `false` for a run that does not exist.
   */
  holdsRun(runId: string, lease: Lease): Promise<boolean>;

  /**
   * Appends a batch durably in one transaction, which also checks the epoch and the expected sequence, deletes the
   * consumed inbox messages and updates the summary from `run.*` events.
   * Throws FENCED, SEQUENCE_CONFLICT or RUN_NOT_FOUND, and then writes nothing.
   */
  append(batch: Batch): Promise<void>;

  /** Returns the events after `afterSeq` in order, each validated. Throws RUN_NOT_FOUND, HISTORY_INVALID. */
  read(runId: string, afterSeq?: number): Promise<readonly HistoryEvent[]>;

  /** Lists runs, newest first. */
  list(query?: RunQuery): Promise<readonly RunSummary[]>;

  /** Returns at most 10 runs of the project whose id starts with `prefix`, newest first. */
  find(prefix: string): Promise<readonly RunSummary[]>;

  /**
   * Posts a message to the current owner, or to the next one. With `seen`, posts it only if history and inbox still end
   * there: the check and the post are one transaction, so that of two answers only one is posted. Returns whether it was
   * posted. Throws RUN_NOT_FOUND.
   */
  post(runId: string, message: InboxMessage, at: Timestamp, seen?: InboxSnapshot): Promise<boolean>;

  /** Returns the pending messages, oldest first. Reading does not consume them; `append` does. */
  inbox(runId: string): Promise<readonly InboxEntry[]>;

  /** Records a child process of the run, so the next owner can stop it if this one dies. Fenced like `append`. */
  addProcess(runId: string, lease: Lease, process: ChildRecord): Promise<void>;
  removeProcess(runId: string, pid: number): Promise<void>;
  processes(runId: string): Promise<readonly ChildRecord[]>;

  readonly claims: ClaimStore;
  readonly workers: WorkerRegistry;
  readonly glance?: Glance | undefined;

  close(): Promise<void>;
}

/** Synchronous reads of a local store, for schedulers that must decide without waiting. */
export interface Glance {
  /** Revision of the claims. */
  revision(): number;
  list(query: RunQuery): readonly RunSummary[];
  /** Owner of a run; `undefined` if there is no such run. */
  ownerOf(runId: string): RunSummary['owner'] | undefined;
  /** Tasks that the run has claimed and not settled. */
  tasksOf(runId: string): readonly string[];
  workers(): readonly WorkerRecord[];
}

/** Project at the top of a worktree, and outside a repository. */
export const topProject = '.';

/** Proof that the caller still owns the run. */
export interface Fence {
  readonly runId: string;
  readonly lease: Lease;
}

/** Proof that an incarnation has acquired a run. */
export interface Lease {
  readonly epoch: number;
  readonly incarnation: string;
}

/** Identity of a process. */
export interface Owner {
  readonly incarnation: string;
  readonly host: string;
  readonly pid: number;
  /** Start time of the process. Together with the pid it is unique, because the system reuses pids. */
  readonly processStart: string;
}

export interface NewRun {
  readonly runId: string;
  readonly workflow: string;
  readonly owner: Owner;
  readonly expiresAt: Timestamp;
  readonly at: Timestamp;
  readonly events: readonly NewEvent[];
}

export interface AcquireRequest {
  readonly runId: string;
  readonly owner: Owner;
  /** Time of the request, for a store on several machines, which cannot ask their kernels and grants leases. */
  readonly now: Timestamp;
  /** End of the lease. On one machine it only shows when the owner last renewed it. */
  readonly expiresAt: Timestamp;
  /** Incarnation of an owner that the caller knows to be dead. */
  readonly provablyDead?: string | undefined;
}

export type AcquireResult =
  | { readonly kind: 'acquired'; readonly lease: Lease }
  | { readonly kind: 'held'; readonly owner: Owner; readonly expiresAt: Timestamp };

export interface Batch {
  readonly runId: string;
  readonly lease: Lease;
  /** Sequence number of the last event that the caller knows. */
  readonly expectedSeq: number;
  readonly at: Timestamp;
  readonly events: readonly NewEvent[];
  /** Ids of inbox entries that became events or have no effect. */
  readonly consumed?: readonly number[];
}

/**
 * `waiting`: no step can continue without a person, a signal event or a timer. `suspended`: stopped by a person, a signal
 * or a budget; a resume continues it.
 */
export type RunStatus = 'running' | 'waiting' | 'suspended' | 'completed' | 'failed' | 'cancelled';

export interface RunQuery {
  readonly limit?: number | undefined;
  readonly workflow?: string | undefined;
  /** Matches runs with any of these statuses. */
  readonly status?: RunStatus | readonly RunStatus[] | undefined;
}

export interface RunSummary {
  readonly runId: string;
  readonly workflow: string;
  readonly status: RunStatus;
  readonly startedAt: Timestamp;
  readonly endedAt: Timestamp | null;
  /** Why the run is suspended. Absent unless it is. */
  readonly suspension?: EventOf<'run.suspended'>['data'] | undefined;
  /** Project of the run, if the store was opened for all projects. */
  readonly project?: string | undefined;
  /** Current owner; null if the run was released. */
  readonly owner: (Owner & { readonly epoch: number; readonly expiresAt: Timestamp }) | null;
}

export type InboxMessage =
  | {
      readonly kind: 'approval';
      readonly step: string;
      readonly choice: string;
      readonly by?: string;
      readonly comment?: string;
    }
  | { readonly kind: 'signal'; readonly name: string; readonly payload: Json; readonly by?: string }
  | { readonly kind: 'cancel'; readonly reason: string; readonly by?: string };

/** State of a run that an answer is based on. */
export interface InboxSnapshot {
  /** Sequence number of the last event. */
  readonly lastSeq: number;
  /** Id of the last entry in the inbox; 0 if it is empty. */
  readonly lastEntry: number;
}

export interface InboxEntry {
  readonly id: number;
  readonly at: Timestamp;
  readonly message: InboxMessage;
}

export interface ChildRecord {
  readonly pid: number;
  readonly processStart: string;
  readonly step: string;
}
