import type { HistoryEvent } from '../core/index.ts';
import type { RunResult, Waiting } from '../engine/index.ts';
import { type RunView, viewOf } from './run-view.ts';
import type { StepProgress, WaitingFor } from './step-progress.ts';

/** Status of a run. */
export interface RunStatusReport {
  readonly view: RunView;
  readonly waiting: readonly Waiting[];
  /** Result of the run. Its status is `waiting` unless the run has ended or is suspended. */
  readonly result: RunResult;
  readonly source: string | undefined;
}

/**
 * Derives the status of a run from its history alone. The definition may no longer exist, and inspecting a run must not
 * execute its code.
 */
export function runStatusOf(runId: string, history: readonly HistoryEvent[]): RunStatusReport {
  const view = viewOf(history);
  const waiting = view.steps.flatMap(waitsOf);
  const [started] = history;
  return {
    view,
    waiting,
    result: resultFrom(runId, view, waiting),
    source: started?.type === 'run.started' ? started.data.source : undefined,
  };
}

function waitsOf(step: StepProgress): Waiting[] {
  if (step.status === 'retrying') return [{ step: step.path, on: 'timer' }];
  if (step.status !== 'waiting' || step.children.length > 0 || step.answer) return [];
  return step.waits.map(wait => toWaiting(step.path, wait));
}

function toWaiting(step: string, wait: WaitingFor): Waiting {
  switch (wait.on) {
    case 'approval':
      return { step, on: 'approval', message: wait.message, choices: wait.choices };
    case 'signal':
      return { step, on: 'signal', signal: wait.signal };
    case 'timer':
    case 'limit':
      return { step, on: 'timer' };
  }
}

const suspended = (
  runId: string,
  { by, reason, error }: NonNullable<RunView['suspension']>,
): Extract<RunResult, { status: 'suspended' }> => ({
  runId,
  status: 'suspended',
  by,
  reason,
  ...(error ? { error } : {}),
});

function resultFrom(runId: string, { end, suspension }: RunView, waiting: readonly Waiting[]): RunResult {
  switch (end?.type) {
    case 'run.completed':
      return { runId, status: 'completed', output: end.data.output };
    case 'run.failed':
      return { runId, status: 'failed', error: end.data.error, step: end.data.step };
    case 'run.cancelled':
      return { runId, status: 'cancelled', reason: end.data.reason };
    case undefined:
      if (suspension) return suspended(runId, suspension);
      return { runId, status: 'waiting', waiting };
  }
}
