import { join } from 'node:path';
import { isJsonObject, type Json, type JsonObject } from '../../core/json.ts';
import { toEpochMs } from '../../core/time.ts';
import type { RunState } from '../state/run-state.ts';
import type { NodeState, ScopeState } from '../state/step-state.ts';

/** What a fan-out gives to those after it: every worker in its place, however it ended, and which one was selected. */
export function fanOutOutput(state: RunState, { selection }: NodeState, { scope }: ScopeState): JsonObject {
  const workers = scope.nodes.map(node => state.of(node));
  const count = (status: string) => workers.filter(worker => statusOf(worker) === status).length;
  return {
    worker_results: workers.map((worker, index) => resultOf(worker, { index, root: state.root })),
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

function resultOf(
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
