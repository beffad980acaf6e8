import { join } from 'node:path';
import type { ErrorData } from '../../core/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../core/json.ts';
import { toEpochMs } from '../../core/time.ts';
import type { SpendingLimit } from '../../workflow/model.ts';
import type { RunState } from '../state/run-state.ts';
import type { NodeState, ScopeState } from '../state/step-state.ts';
import type { Spent } from '../state/work-state.ts';

/** How a call of the engine came to its end. */
export type RunResult = { readonly runId: string } & (
  | { readonly status: 'completed'; readonly output: Json }
  /** `step`: the first cause. */
  | { readonly status: 'failed'; readonly error: ErrorData; readonly step?: string | undefined }
  | { readonly status: 'cancelled'; readonly reason: string }
  /** Nothing can go on without what it waits for; the run was released and can be resumed. */
  | { readonly status: 'suspended'; readonly waiting: readonly Waiting[] }
);

/** What a run waits for. */
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
      return { runId, status: 'suspended', waiting: waitingOf(state) };
  }
}

/** What the steps under way wait for, in the order of the graph. */
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

/** What a fan-out gives to those after it: every worker in its place, however it ended, and which one was selected. */
export function fanOutOutput(state: RunState, { selection }: NodeState, { scope }: ScopeState): JsonObject {
  const workers = scope.nodes.map(node => state.of(node));
  const count = (status: string) => workers.filter(worker => statusOf(worker) === status).length;
  return {
    worker_results: workers.map((worker, index) => workerResultOf(worker, { index, root: state.root })),
    total_workers: workers.length,
    success_count: count('completed'),
    fail_count: count('failed'),
    cancelled_count: count('cancelled'),
    ...(selection ? { selected: selection.winner } : {}),
  };
}

/** A worker that never got to start was cancelled, in the eyes of those who count. */
const statusOf = ({ status }: NodeState): 'completed' | 'failed' | 'cancelled' =>
  status === 'completed' || status === 'failed' ? status : 'cancelled';

function workerResultOf(
  worker: NodeState,
  { index, root }: { readonly index: number; readonly root: string },
): Json {
  const { output, error, work, artifacts, startedAt, endedAt } = worker;
  const status = statusOf(worker);
  return {
    index,
    status,
    ...(status === 'completed' ? { output: output ?? null } : {}),
    ...(status === 'failed' && error ? { error: { ...error } as JsonObject } : {}),
    ...(artifacts ? { artifacts: pathsByName(artifacts, root) } : {}),
    workspace: work?.workspace ? join(root, work.workspace.path) : null,
    branch: work?.workspace?.branch ?? null,
    cost: work?.spent.costUnknown ? null : (work?.spent.costUsd ?? 0),
    duration_ms: startedAt && endedAt ? toEpochMs(endedAt) - toEpochMs(startedAt) : 0,
  };
}

/** Where the files that a step hands on are, in full. */
export const pathsByName = (
  artifacts: NonNullable<NodeState['artifacts']>,
  root: string,
): Record<string, string> => Object.fromEntries(artifacts.map(({ name, path }) => [name, join(root, path)]));

const volatileOfWorker: ReadonlySet<string> = new Set([
  'artifacts',
  'workspace',
  'branch',
  'cost',
  'duration_ms',
]);
const volatileOfLanding: ReadonlySet<string> = new Set(['branch', 'commit', 'landed']);

/** The same value without what differs from run to run: where workers worked, how long it took and what it cost. */
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

/** Messages may name paths and times. */
const errorCode = (error: Json): Json => (isJsonObject(error) ? (error['code'] ?? null) : null);

/** What was used up beyond what may be, for people; undefined if nothing was. Unknown cost counts as none. */
export function overspent(spent: Spent, limit: SpendingLimit): string | undefined {
  if (limit.costUsd !== undefined && spent.costUsd > limit.costUsd)
    return `cost ${usd(spent.costUsd)}, and may cost ${usd(limit.costUsd)}`;
  if (limit.tokens !== undefined && spent.tokens > limit.tokens)
    return `used ${spent.tokens} tokens, and may use ${limit.tokens}`;
  return undefined;
}

/** What is left of several limits, each with what was used of it: the least of them. */
export function leftOf(
  limits: readonly { readonly limit: SpendingLimit; readonly spent: Spent }[],
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
