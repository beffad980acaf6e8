import type { ErrorData } from '../core/errors.ts';
import type { Json } from '../core/json.ts';
import type { RunState } from './state/run-state.ts';

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
