import type { Environment } from '../engine/index.ts';
import type { Owner, RunSummary } from '../store/index.ts';
import type { SpendingLimit } from '../workflow/index.ts';
import { isUsedUp } from './budget.ts';
import { workerWorkflow } from './contract.ts';

/** State that a sleeping worker compares with. */
export interface WakeSnapshot {
  /** Tip of the branch. */
  readonly main: string | null;
  /** Revision of the claims. */
  readonly revision: number;
  /** Digest of the output of `tasks.command`, if the project has one. */
  readonly listed?: string | undefined;
  /** Runs with stalled owners, from `stallMark`; absent if there are none. */
  readonly stalled?: string | undefined;
}

/** A run whose owner lives, but has given no sign of life for a while. */
export interface StalledRun {
  readonly runId: string;
  readonly owner: Pick<Owner, 'pid' | 'host'>;
  /** Time for which the owner has been stalled. */
  readonly ms: number;
  /** Whether the worker does not wait for the owner any longer. */
  readonly isGivenUp: boolean;
}

/** Runs with stalled owners. */
export const stalledAmong = (
  runs: readonly RunSummary[],
  { stalledFor, settings }: Pick<Environment, 'stalledFor' | 'settings'>,
): readonly StalledRun[] =>
  runs.flatMap(({ runId, owner }) => {
    const ms = owner ? stalledFor?.(owner) : undefined;
    if (!owner || ms === undefined) return [];
    const { pid, host } = owner;
    return { runId, owner: { pid, host }, ms, isGivenUp: ms >= (settings.lockTimeoutMs ?? Infinity) };
  });

/** Digest of stalled runs, which changes when a run stalls, continues or is given up. */
export const stallMark = (stalled: readonly StalledRun[]): string | undefined =>
  stalled.map(({ runId, isGivenUp }) => (isGivenUp ? `${runId} given up` : runId)).join(', ') || undefined;

/** Difference from the snapshot that wakes a worker. */
export type WakeReason = 'main' | 'claims' | 'tasks' | 'abandoned' | 'stalled';

export interface ChangeQuery {
  readonly seen: WakeSnapshot;
  /** Time at which leases are judged, in milliseconds since the epoch. */
  readonly now: number;
}

/** Current state, to be compared with a snapshot. */
export interface WakeState {
  readonly main: string | null;
  readonly revision: number;
  /** Ids of abandoned worker runs. */
  readonly abandoned: readonly string[];
  readonly stalled?: string | undefined;
}

/** Compares the current state with a snapshot. Returns `null` if nothing has changed. */
export function differenceFrom(
  seen: WakeSnapshot,
  { main, revision, abandoned, stalled }: WakeState,
): WakeReason | null {
  if (main !== seen.main) return 'main';
  if (revision !== seen.revision) return 'claims';
  if (abandoned.length > 0) return 'abandoned';
  return stalled === seen.stalled ? null : 'stalled';
}

/** Filter for the runs that may be abandoned. */
export const unfinished = { workflow: workerWorkflow, status: ['running', 'suspended'] } as const;

type LivenessContext = Pick<Environment, 'isAlive'> & {
  /** Spending limit of a single task. */
  readonly taskBudget: SpendingLimit | undefined;
};

/**
 * Ids of the abandoned runs, oldest first: runs without an owner or with a dead owner. A run that has used up its own
 * budget is left alone until that budget is raised.
 */
export const abandonedAmong = (runs: readonly RunSummary[], judge: LivenessContext): readonly string[] =>
  runs
    .filter(run => isAbandoned(run, judge))
    .map(({ runId }) => runId)
    .reverse();

const isAbandoned = ({ owner, suspension }: RunSummary, { isAlive, taskBudget }: LivenessContext): boolean =>
  !(suspension?.by === 'budget' && isUsedUp(suspension.limit, taskBudget)) &&
  (owner === null || !isAlive(owner));

/**
 * Synchronous form of the comparison, for schedulers. `main` is the tip of the branch, or `undefined` if reading it
 * needs git. Returns `true` if the store cannot be read synchronously.
 */
export function isDifferent(
  seen: WakeSnapshot,
  { store, ...judge }: LivenessContext & Pick<Environment, 'store' | 'stalledFor' | 'settings'>,
  main: string | null | undefined,
): boolean {
  const { glance } = store;
  if (!glance || main === undefined) return true;
  const runs = glance.list(unfinished);
  const abandoned = abandonedAmong(runs, judge);
  const stalled = stallMark(stalledAmong(runs, judge));
  return differenceFrom(seen, { main, revision: glance.revision(), abandoned, stalled }) !== null;
}

/** Filter for the runs that wait for a person. */
export const waitingRuns = { workflow: workerWorkflow, status: 'waiting' } as const;

/** Ids of the waiting runs that have an answer and no live owner, oldest first. */
export async function answeredAmong(
  runs: readonly RunSummary[],
  { store, ...judge }: LivenessContext & Pick<Environment, 'store'>,
): Promise<readonly string[]> {
  const answered: string[] = [];
  for (const runId of abandonedAmong(runs, judge))
    if ((await store.inbox(runId)).length > 0) answered.push(runId);
  return answered;
}
