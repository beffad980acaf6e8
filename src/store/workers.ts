import type { Timestamp } from '../core/time.ts';
import type { Owner } from './port.ts';

/** The workers of a project, as they describe themselves. Nothing is decided by it but what is shown and said to others. */
export interface WorkerRegistry {
  /** Adds or replaces the worker with this incarnation. */
  put(worker: WorkerRecord): Promise<void>;
  remove(incarnation: string): Promise<void>;
  /** By when they started; by name if that was at the same time. */
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
  /** What it lands on. */
  readonly branch: string;
  readonly startedAt: Timestamp;
  /** Its last sign of life. */
  readonly beatAt: Timestamp;
  readonly state: WorkerState;
  readonly task?: string | undefined;
  readonly agent?: string | undefined;
  readonly runId?: string | undefined;
  /** What it waits for, or did last. */
  readonly note?: string | undefined;
  /** Of all its tasks so far; `null` if part of it is not known. */
  readonly costUsd: number | null;
}

const orderOf = ({ startedAt, name, incarnation }: WorkerRecord): string =>
  [startedAt, name, incarnation].join('\0');

/** The order in which a store lists them. */
export const byStart = (a: WorkerRecord, b: WorkerRecord): number => (orderOf(a) < orderOf(b) ? -1 : 1);
