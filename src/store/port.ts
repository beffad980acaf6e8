import type { HistoryEvent, Json, NewEvent, Timestamp } from '../core/index.ts';
import type { ClaimStore } from './claims.ts';
import type { WorkerRecord, WorkerRegistry } from './runs.ts';

/**
 * Where histories live. A run has one owner at a time; every write of the owner names its epoch, so that a process
 * that lost the run is fenced out by the store itself. Everybody else writes to the inbox.
 * All times come from the caller: a store has no clock.
 */
export interface EventStore {
  /**
   * Creates a run, owned by `owner` with epoch 1, together with its first events, in one transaction.
   * Throws SEQUENCE_CONFLICT if the id is taken.
   */
  createRun(run: NewRun): Promise<Lease>;

  /**
   * Takes the run if it was released, its lease has expired, or its owner is the one named in `provablyDead`.
   * The epoch grows by one; whoever held the run before is fenced out from then on. Throws RUN_NOT_FOUND.
   */
  acquire(request: AcquireRequest): Promise<AcquireResult>;

  /** Extends the lease. `false`: the run has another owner now. */
  renew(runId: string, lease: Lease, expiresAt: Timestamp): Promise<boolean>;

  /**
   * Gives the run up, so that anybody can take it at once; its status stays what it was unless one is given.
   * Does nothing if it has another owner by now.
   */
  release(runId: string, lease: Lease, status?: RunStatus): Promise<void>;

  /**
   * Whether the lease still counts: to be asked right before something that cannot be undone and that no store guards.
   * One that has expired counts until somebody takes the run. `false` for a run that does not exist.
   */
  holdsRun(runId: string, lease: Lease): Promise<boolean>;

  /**
   * Appends a batch, durably, in one transaction: the epoch and the expected sequence are checked, the inbox
   * messages that the events came from are deleted, and the summary follows `run.*` events.
   * Throws FENCED, SEQUENCE_CONFLICT or RUN_NOT_FOUND, having written nothing.
   */
  append(batch: Batch): Promise<void>;

  /** The history in order, each event validated; from `afterSeq` on. Throws RUN_NOT_FOUND, HISTORY_INVALID. */
  read(runId: string, afterSeq?: number): Promise<readonly HistoryEvent[]>;

  /** Newest first. */
  list(query?: RunQuery): Promise<readonly RunSummary[]>;

  /** The runs whose id starts with `prefix` (at most 10), newest first. */
  find(prefix: string): Promise<readonly RunSummary[]>;

  /** Leaves a message for the owner, or for the next resume. Throws RUN_NOT_FOUND. */
  post(runId: string, message: InboxMessage, at: Timestamp): Promise<void>;

  /** What waits in the inbox, oldest first. Reading does not consume: `append` does. */
  inbox(runId: string): Promise<readonly InboxEntry[]>;

  /** Remembers a child process of the run, so that the next owner can end it if this one dies. Fenced like `append`. */
  addProcess(runId: string, lease: Lease, process: ChildRecord): Promise<void>;
  removeProcess(runId: string, pid: number): Promise<void>;
  processes(runId: string): Promise<readonly ChildRecord[]>;

  readonly claims: ClaimStore;
  readonly workers: WorkerRegistry;
  readonly glance?: Glance | undefined;

  close(): Promise<void>;
}

/** What a store that is not elsewhere can tell at once, for whoever has to decide without waiting. */
export interface Glance {
  /** Of the claims. */
  revision(): number;
  list(query: RunQuery): readonly RunSummary[];
  /** Who owns a run; `undefined` if there is no such run. */
  ownerOf(runId: string): RunSummary['owner'] | undefined;
  /** The tasks whose claims are its own, and not settled. */
  tasksOf(runId: string): readonly string[];
  workers(): readonly WorkerRecord[];
}

/** That the run of whoever asks still is his. */
export interface Fence {
  readonly runId: string;
  readonly lease: Lease;
}

/** Proof of ownership. */
export interface Lease {
  readonly epoch: number;
  readonly incarnation: string;
}

/** One life of one process. */
export interface Owner {
  readonly incarnation: string;
  readonly host: string;
  readonly pid: number;
  /** With the pid, names a process for ever: pids are used again. */
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
  readonly now: Timestamp;
  readonly expiresAt: Timestamp;
  /** Incarnation of an owner that the caller has seen to be dead. */
  readonly provablyDead?: string | undefined;
}

export type AcquireResult =
  | { readonly kind: 'acquired'; readonly lease: Lease }
  | { readonly kind: 'held'; readonly owner: Owner; readonly expiresAt: Timestamp };

export interface Batch {
  readonly runId: string;
  readonly lease: Lease;
  /** The sequence number of the last event that the caller knows of. */
  readonly expectedSeq: number;
  readonly at: Timestamp;
  readonly events: readonly NewEvent[];
  /** Ids of inbox entries that became events, or that were found to mean nothing. */
  readonly consumed?: readonly number[];
}

/** `suspended`: nothing can go on without a person or a signal. */
export type RunStatus = 'running' | 'suspended' | 'completed' | 'failed' | 'cancelled';

export interface RunQuery {
  readonly limit?: number | undefined;
  readonly workflow?: string | undefined;
  /** Any of them. */
  readonly status?: RunStatus | readonly RunStatus[] | undefined;
}

export interface RunSummary {
  readonly runId: string;
  readonly workflow: string;
  readonly status: RunStatus;
  readonly startedAt: Timestamp;
  readonly endedAt: Timestamp | null;
  /** Who has it; null when it was released. */
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
