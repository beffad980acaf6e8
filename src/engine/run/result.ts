import {
  type ErrorData,
  type EventOf,
  isJsonObject,
  type Json,
  type JsonObject,
  toEpochMs,
} from '../../core/index.ts';
import type { SpendingLimit } from '../../workflow/index.ts';
import { type HistoryFolders, resolveRecorded } from '../environment.ts';
import type { RunState } from '../state/run-state.ts';
import type { NodeState, ScopeState } from '../state/step-state.ts';
import type { SpentTotals } from '../state/work-state.ts';

/** The result of starting, resuming or forking a run. */
export type RunResult = { readonly runId: string } & (
  | { readonly status: 'completed'; readonly output: Json }
  /** `step` is the first cause. */
  | { readonly status: 'failed'; readonly error: ErrorData; readonly step?: string | undefined }
  | { readonly status: 'cancelled'; readonly reason: string }
  /** The run was stopped by a person, a signal or a budget. A resume continues its sessions. */
  | ({ readonly status: 'suspended' } & Pick<EventOf<'run.suspended'>['data'], 'by' | 'reason' | 'error'>)
  /** No step can continue without an answer. The run was released and can be resumed. */
  | { readonly status: 'waiting'; readonly waiting: readonly Waiting[] }
);

/** An answer that a run waits for. */
export type Waiting =
  | {
      readonly step: string;
      readonly on: 'approval';
      readonly message: string;
      readonly choices: readonly string[];
    }
  | { readonly step: string; readonly on: 'signal'; readonly signal: string }
  | { readonly step: string; readonly on: 'timer' };

export function resultOf(runId: string, state: RunState): RunResult {
  switch (state.end?.type) {
    case 'run.completed':
      return { runId, status: 'completed', output: state.end.data.output };
    case 'run.failed': {
      const { error, step } = state.end.data;
      return { runId, status: 'failed', error, step };
    }
    case 'run.cancelled':
      return { runId, status: 'cancelled', reason: state.end.data.reason };
    case undefined:
      if (state.suspended) return { runId, status: 'suspended', ...suspensionOf(state.suspended) };
      return { runId, status: 'waiting', waiting: waitingOf(state) };
  }
}

/** Returns the part of a suspension that a result contains. */
const suspensionOf = ({ by, reason, error }: EventOf<'run.suspended'>['data']) => ({
  by,
  reason,
  ...(error ? { error } : {}),
});

/** Returns what the active steps wait for, in graph order. */
function waitingOf(state: RunState): readonly Waiting[] {
  const active = [...state.active].sort((a, b) => a.node.index - b.node.index);
  return active.flatMap(({ node, status, approval, waits, timers }): Waiting[] => {
    if (status !== 'waiting') return [];
    const step = node.unit;
    if (approval) return [{ step, on: 'approval', message: approval.message, choices: approval.choices }];
    if (timers?.has('retry') || timers?.has('pause')) return [{ step, on: 'timer' }];
    return [...(waits?.values() ?? [])].flatMap(({ on, signal, answer }): Waiting[] => {
      if (answer) return [];
      return on === 'signal' && signal ? [{ step, on, signal }] : on === 'timer' ? [{ step, on }] : [];
    });
  });
}

/** Returns the output of a fan-out: the result of every copy by index, and the selected copy. */
export function fanOutOutput(state: RunState, { selection }: NodeState, { scope }: ScopeState): JsonObject {
  const workers = scope.nodes.map(node => state.of(node));
  const count = (status: string) => workers.filter(worker => statusOf(worker) === status).length;
  return {
    worker_results: workers.map((worker, index) => workerResultOf(worker, { index, folders: state.folders })),
    total_workers: workers.length,
    success_count: count('completed'),
    fail_count: count('failed'),
    cancelled_count: count('cancelled'),
    ...(selection ? { selected: selection.winner } : {}),
  };
}

/** Counts a copy that never started as cancelled. */
const statusOf = ({ status }: NodeState): 'completed' | 'failed' | 'cancelled' =>
  status === 'completed' || status === 'failed' ? status : 'cancelled';

function workerResultOf(
  worker: NodeState,
  { index, folders }: { readonly index: number; readonly folders: HistoryFolders },
): Json {
  const { output, error, work, artifacts, startedAt, endedAt } = worker;
  const status = statusOf(worker);
  return {
    index,
    status,
    ...(status === 'completed' ? { output: output ?? null } : {}),
    ...(status === 'failed' && error ? { error: { ...error } as JsonObject } : {}),
    ...(artifacts ? { artifacts: pathsByName(artifacts, folders) } : {}),
    workspace: work?.workspace ? resolveRecorded(folders, work.workspace.path) : null,
    branch: work?.workspace?.branch ?? null,
    cost: work?.spent.costUnknown ? null : (work?.spent.costUsd ?? 0),
    duration_ms: startedAt && endedAt ? toEpochMs(endedAt) - toEpochMs(startedAt) : 0,
  };
}

/** Returns the absolute paths of a step's artifacts. */
export const pathsByName = (
  artifacts: NonNullable<NodeState['artifacts']>,
  folders: HistoryFolders,
): Record<string, string> =>
  Object.fromEntries(artifacts.map(({ name, path }) => [name, resolveRecorded(folders, path)]));

const volatileOfWorker: ReadonlySet<string> = new Set([
  'artifacts',
  'workspace',
  'branch',
  'cost',
  'duration_ms',
]);
const volatileOfLanding: ReadonlySet<string> = new Set(['branch', 'commit', 'landed']);

/** Removes everything that differs from run to run: where copies worked, how long they took and what they cost. */
export function withoutVolatile(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutVolatile);
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value);
  const isFanOut = 'worker_results' in value && 'total_workers' in value;
  const isLanding = 'outcome' in value && 'onto' in value;
  return Object.fromEntries(
    entries
      .filter(([key]) => !isLanding || !volatileOfLanding.has(key))
      .map(([key, inner]) => {
        if (isFanOut && key === 'worker_results' && Array.isArray(inner))
          return [key, inner.map(stableWorker)];
        return [key, withoutVolatile(inner)];
      }),
  );
}

function stableWorker(worker: Json): Json {
  if (!isJsonObject(worker)) return worker;
  const kept = Object.entries(worker).filter(([key]) => !volatileOfWorker.has(key));
  return Object.fromEntries(
    kept.map(([key, inner]) => [key, key === 'error' ? errorCode(inner) : withoutVolatile(inner)]),
  );
}

/** Keeps only the code, because messages may contain paths and times. */
const errorCode = (error: Json): Json => (isJsonObject(error) ? (error['code'] ?? null) : null);

/** Describes overspending, or returns `undefined` within the limits. Unknown cost counts as zero. */
export function overspent(spent: SpentTotals, limit: SpendingLimit): string | undefined {
  if (limit.costUsd !== undefined && spent.costUsd > limit.costUsd)
    return `cost ${usd(spent.costUsd)}, more than its limit of ${usd(limit.costUsd)}`;
  if (limit.tokens !== undefined && spent.tokens > limit.tokens)
    return `used ${spent.tokens} tokens, more than its limit of ${limit.tokens}`;
  return undefined;
}

/** Returns the smallest remainder of several limits. */
export function leftOf(
  limits: readonly { readonly limit: SpendingLimit; readonly spent: SpentTotals }[],
): SpendingLimit {
  const least = (values: readonly (number | undefined)[]): number | undefined => {
    const known = values.filter(value => value !== undefined);
    return known.length > 0 ? Math.max(0, Math.min(...known)) : undefined;
  };
  return {
    costUsd: least(limits.map(({ limit, spent }) => limit.costUsd && limit.costUsd - spent.costUsd)),
    tokens: least(limits.map(({ limit, spent }) => limit.tokens && limit.tokens - spent.tokens)),
  };
}

const usd = (amount: number): string => `$${amount.toFixed(2)}`;
