import {
  type Fields,
  fields,
  firstProblem,
  type HistoryEvent,
  isRecord,
  json,
  type Mutable,
  type NewEvent,
  oneOf,
  RepriseError,
  type Timestamp,
  text,
} from '../core/index.ts';
import { checkEvent, type EventParts, knownType, parseEvent } from '../core/parse-event.ts';
import type {
  AcquireRequest,
  AcquireResult,
  Batch,
  InboxEntry,
  InboxMessage,
  Lease,
  Owner,
  RunStatus,
} from './port.ts';

/** Current lease of a run, against which a write is checked. */
export interface LeaseState {
  readonly epoch: number;
  /** Incarnation of the owner; null if the run was released. */
  readonly incarnation: string | null;
}

export type LeaseHolder = Owner & { readonly expiresAt: Timestamp };

export const holds = (leaseState: LeaseState, lease: Lease): boolean =>
  leaseState.epoch === lease.epoch && leaseState.incarnation === lease.incarnation;

/** Throws FENCED if the lease is no longer valid. */
export function checkLease(runId: string, leaseState: LeaseState, lease: Lease): void {
  if (holds(leaseState, lease)) return;
  const now = leaseState.incarnation === null ? 'was released' : `belongs to ${leaseState.incarnation}`;
  throw new RepriseError(
    'FENCED',
    `run ${runId} ${now} (epoch ${leaseState.epoch}); ${lease.incarnation} held epoch ${lease.epoch}`,
    { hint: 'another process continues the run; nothing was written' },
  );
}

/** Throws FENCED or SEQUENCE_CONFLICT. */
export function checkBatch(batch: Batch, leaseState: LeaseState & { readonly lastSeq: number }): void {
  checkLease(batch.runId, leaseState, batch.lease);
  if (leaseState.lastSeq === batch.expectedSeq) return;
  throw new RepriseError(
    'SEQUENCE_CONFLICT',
    `the history of run ${batch.runId} ends at event ${leaseState.lastSeq}, not at ${batch.expectedSeq}`,
    { hint: 'read the history again before appending to it' },
  );
}

/** Owner that prevents the acquisition of a run; `undefined` if the run is free. */
export function currentHolder(
  holder: LeaseHolder | null,
  { provablyDead }: AcquireRequest,
): Extract<AcquireResult, { kind: 'held' }> | undefined {
  if (!holder || holder.incarnation === provablyDead) return undefined;
  const { incarnation, host, pid, processStart, expiresAt } = holder;
  return { kind: 'held', owner: { incarnation, host, pid, processStart }, expiresAt };
}

export const runNotFound = (runId: string): RepriseError =>
  new RepriseError('RUN_NOT_FOUND', `no run ${runId} in this store`, {
    hint: 'list the runs: reprise list',
  });

export const runIdTaken = (runId: string): RepriseError =>
  new RepriseError('SEQUENCE_CONFLICT', `run ${runId} already exists`, { hint: 'use another run id' });

export interface RunOutcome {
  readonly status: RunStatus;
  readonly endedAt: Timestamp | null;
}

/** Status of the run after a batch, from its last `run.*` event; `undefined` if it has none. */
export function outcomeOf(events: readonly NewEvent[], at: Timestamp): RunOutcome | undefined {
  const status = events.map(event => statusAfter(event.type)).findLast(after => after !== undefined);
  return status && { status, endedAt: isOpen(status) ? null : at };
}

/** Whether a run with this status has not ended. */
export const isOpen = (status: RunStatus | null): boolean =>
  status === 'running' || status === 'waiting' || status === 'suspended';

function statusAfter(type: HistoryEvent['type']): RunStatus | undefined {
  switch (type) {
    case 'run.started':
    case 'run.resumed':
      return 'running';
    case 'run.suspended':
      return 'suspended';
    case 'run.completed':
      return 'completed';
    case 'run.failed':
      return 'failed';
    case 'run.cancelled':
      return 'cancelled';
    case 'step.started':
    case 'step.completed':
    case 'step.failed':
    case 'step.cancelled':
    case 'step.skipped':
    case 'step.retrying':
    case 'step.interrupted':
    case 'step.suspended':
    case 'step.resumed':
    case 'timer.set':
    case 'timer.fired':
    case 'approval.requested':
    case 'approval.given':
    case 'signal.received':
    case 'cancel.requested':
      return undefined;
  }
}

/** Stored form of an event. A tuple, because histories are read whole and objects cost three times as much. */
export type EventRow = readonly [
  seq: number,
  at: string,
  type: string,
  step: string | null,
  worker: number | null,
  attempt: number | null,
  data: string,
];

/** Converts an event to its stored form. Throws HISTORY_INVALID if it could not be read back. */
export function toEventRow(event: NewEvent, { runId, seq, at }: EventPosition): EventRow {
  const { type, step, worker, attempt, data } = event;
  checkEvent({ seq, runId, at, type, step, worker, attempt, data });
  return [seq, at, type, step ?? null, worker ?? null, attempt ?? null, JSON.stringify(data)];
}

interface EventPosition {
  readonly runId: string;
  readonly seq: number;
  readonly at: Timestamp;
}

/** Validates the rows after `afterSeq`. Throws HISTORY_INVALID at a gap and at an unknown or malformed event. */
export function toHistory(runId: string, afterSeq: number, rows: readonly EventRow[]): HistoryEvent[] {
  return rows.map((row, index) => {
    const seq = afterSeq + index + 1;
    if (row[0] !== seq)
      throw historyInvalid(runId, seq, `is missing: the next one in the store is ${row[0]}`);
    try {
      return eventOf(runId, row, 0, JSON.parse(row[6]));
    } catch (cause) {
      throw historyInvalid(runId, seq, `cannot be read: ${describe(cause)}`, cause);
    }
  });
}

const rowLength = 7;

/**
 * The same for rows that are concatenated in one list, with their data already parsed. Returns `undefined` if a sequence
 * number is not at its expected index; throws HISTORY_INVALID if an event is malformed.
 */
export function toHistoryOfList(
  runId: string,
  afterSeq: number,
  list: readonly unknown[],
): HistoryEvent[] | undefined {
  const events: HistoryEvent[] = [];
  for (let first = 0; first < list.length; first += rowLength) {
    if (list[first] !== afterSeq + events.length + 1) return undefined;
    events.push(eventOf(runId, list, first, list[first + 6]));
  }
  return events;
}

/** Reads fields by index: destructuring the list costs as much as everything else here. */
function eventOf(runId: string, row: readonly unknown[], first: number, data: unknown): HistoryEvent {
  const seq = row[first];
  const at = row[first + 1];
  const type = knownType(row[first + 2]) ?? row[first + 2];
  const step = row[first + 3];
  const worker = row[first + 4];
  const attempt = row[first + 5];
  // Nearly every event has this shape, and an object literal is smaller and faster than one that grows.
  if (step !== null && worker === null && attempt !== null)
    return parseEvent({ seq, runId, at, type, step, attempt, data });
  const parts: Mutable<EventParts> = { seq, runId, at, type };
  if (step !== null) parts.step = step;
  if (worker !== null) parts.worker = worker;
  if (attempt !== null) parts.attempt = attempt;
  parts.data = data;
  return parseEvent(parts);
}

function historyInvalid(runId: string, seq: number, what: string, cause?: unknown): RepriseError {
  const hint = cause instanceof RepriseError ? cause.hint : undefined;
  return new RepriseError('HISTORY_INVALID', `event ${seq} of run ${runId} ${what}`, {
    hint: hint ?? 'the store is damaged: restore it from a backup, or start a new run',
    cause,
  });
}

const describe = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));

const knownFields: Readonly<Record<InboxMessage['kind'], Fields>> = {
  approval: fields({ kind: oneOf('approval'), step: text, choice: text }, { by: text, comment: text }),
  signal: fields({ kind: oneOf('signal'), name: text, payload: json }, { by: text }),
  cancel: fields({ kind: oneOf('cancel'), reason: text }, { by: text }),
};

function toMessage(raw: unknown): InboxMessage {
  const kind = isRecord(raw) ? raw['kind'] : undefined;
  const known =
    typeof kind === 'string' && Object.hasOwn(knownFields, kind)
      ? knownFields[kind as InboxMessage['kind']]
      : undefined;
  const problem = known ? firstProblem(known, raw) : `unknown kind ${JSON.stringify(kind)}`;
  if (problem !== undefined) throw new RepriseError('HISTORY_INVALID', problem);
  return raw as InboxMessage;
}

export interface InboxRow {
  readonly id: number;
  readonly at: string;
  readonly message: string;
}

/** Throws HISTORY_INVALID with the run and the entry: an unknown message must not be lost silently. */
export function toInboxEntry(runId: string, { id, at, message }: InboxRow): InboxEntry {
  try {
    return { id, at, message: toMessage(JSON.parse(message)) };
  } catch (cause) {
    throw new RepriseError('HISTORY_INVALID', `inbox entry ${id} of run ${runId} cannot be read`, {
      hint: 'it may come from a newer Reprise: upgrade, or check the store for damage',
      cause,
    });
  }
}

/** Worker processes of a project, as they describe themselves. Informative only: ownership never depends on it. */
export interface WorkerRegistry {
  /** Adds or replaces the worker with this incarnation. */
  put(worker: WorkerRecord): Promise<void>;
  remove(incarnation: string): Promise<void>;
  /** Lists the workers by start time, then by name. */
  list(): Promise<readonly WorkerRecord[]>;
}

export const workerStates = [
  'starting',
  'dispatching',
  'working',
  'landing',
  'sleeping',
  'stopping',
] as const;
export type WorkerState = (typeof workerStates)[number];

export interface WorkerRecord extends Owner {
  readonly name: string;
  /** Project of the worker, if the store was opened for all projects. */
  readonly project?: string | undefined;
  /** Branch to land on. */
  readonly branch: string;
  readonly startedAt: Timestamp;
  /** Time of the last heartbeat. */
  readonly beatAt: Timestamp;
  readonly state: WorkerState;
  readonly task?: string | undefined;
  readonly agent?: string | undefined;
  readonly runId?: string | undefined;
  /** Details of its state, such as the reason for waiting. */
  readonly note?: string | undefined;
  /** Cost of all its tasks so far; `null` if it is not fully known. */
  readonly costUsd: number | null;
}

const orderOf = ({ startedAt, name, incarnation }: WorkerRecord): string =>
  [startedAt, name, incarnation].join('\0');

/** Order in which stores list workers. */
export const byStart = (a: WorkerRecord, b: WorkerRecord): number => (orderOf(a) < orderOf(b) ? -1 : 1);
