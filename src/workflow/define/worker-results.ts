import type { ErrorData } from '../../core/errors.ts';

/** What one copy of a step came to. */
export interface WorkerResult<Output> {
  /** From 0. */
  readonly index: number;
  readonly status: 'completed' | 'failed' | 'cancelled';
  /** If it completed. */
  readonly output?: Output;
  /** If it failed. */
  readonly error?: ErrorData;
  readonly workspace: string | null;
  readonly branch: string | null;
  /** In US dollars; `null` if it is not known. */
  readonly cost: number | null;
  readonly duration_ms: number;
}

/** What a step with `concurrency` or `matrix` gives to those after it: every copy in its place, however it ended. */
export interface WorkerResults<Output> {
  readonly worker_results: readonly WorkerResult<Output>[];
  readonly total_workers: number;
  readonly success_count: number;
  readonly fail_count: number;
  readonly cancelled_count: number;
  /** The index of the copy that `select` picked. */
  readonly selected?: number;
}

/** What a step gives that may be multiplied: `concurrency` of 0 or 1 is an ordinary step. */
export type FannedOut<Copies extends number, Item, Output> = [Item] extends [never]
  ? number extends Copies
    ? Output | WorkerResults<Output>
    : Copies extends 0 | 1
      ? Output
      : WorkerResults<Output>
  : WorkerResults<Output>;
