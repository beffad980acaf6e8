import { hash } from 'node:crypto';
import { canonicalJson, type HistoryEvent, type Json } from '../../core/index.ts';
import { withoutVolatile } from '../run/result.ts';
import { definitionPath, unitOfEvent } from '../state/graph.ts';
import { effectiveHistory, isRunEnd } from './effective.ts';

export interface Digests {
  /** Equal if two runs have the same result: status, output and error code of the run and of each step. */
  readonly outcome: string;
  /** Equal if, in addition, every step took the same number of attempts. */
  readonly history: string;
}

interface StepOutcome {
  status: string;
  output: Json;
  error: Json;
  choice: Json;
  attempts: number;
}

/**
 * Neither digest contains times, durations, costs, ids, paths, branches, or whether a run was interrupted and resumed.
 */
export function digestsOf(history: readonly HistoryEvent[]): Digests {
  const steps = new Map<string, StepOutcome>();
  let run: Json = { status: 'running' };
  for (const event of effectiveHistory(history).events) {
    const key = `${event.step ?? ''}\u0000${event.worker ?? ''}`;
    switch (event.type) {
      case 'run.completed':
        run = { status: 'completed', output: withoutVolatile(event.data.output) };
        break;
      case 'run.failed':
        run = { status: 'failed' };
        break;
      case 'run.cancelled':
        run = { status: 'cancelled' };
        break;
      case 'step.started': {
        const attempts = event.attempt ?? 1;
        const before = steps.get(key);
        // After an interruption, the same attempt does not repeat its selection or landing.
        const choice = before?.attempts === attempts ? before.choice : null;
        steps.set(key, { status: 'started', output: null, error: null, choice, attempts });
        break;
      }
      case 'step.skipped':
        steps.set(key, { status: 'skipped', output: null, error: null, choice: null, attempts: 0 });
        break;
      case 'approval.given':
        change(steps, key, { choice: event.data.choice });
        break;
      case 'step.completed':
        change(steps, key, { status: 'completed', output: withoutVolatile(event.data.output) });
        break;
      case 'step.failed':
        change(steps, key, { status: 'failed', error: event.data.error.code });
        break;
      case 'step.cancelled':
        change(steps, key, { status: 'cancelled' });
        break;
      case 'selection.made':
        change(steps, key, { choice: event.data.winner });
        break;
      case 'landing.ended':
        change(steps, key, { choice: event.data.outcome });
        break;
      case 'transition.taken': {
        const { from, to, args = {} } = event.data;
        const before = steps.get(key)?.choice;
        change(steps, key, { choice: [...(Array.isArray(before) ? before : []), { from, to, args }] });
        break;
      }
      case 'landing.delivered':
      case 'landing.parked':
      case 'work.checked':
      case 'fanout.expanded':
      case 'step.paused':
      case 'workspace.created':
      case 'workspace.saved':
      case 'session.started':
      case 'session.named':
      case 'session.ended':
      case 'landing.started':
      case 'run.started':
      case 'run.resumed':
      case 'run.suspended':
      case 'step.retrying':
      case 'step.interrupted':
      case 'step.suspended':
      case 'step.resumed':
      case 'timer.set':
      case 'timer.fired':
      case 'approval.requested':
      case 'signal.received':
      case 'cancel.requested':
        break;
    }
  }
  const sorted = [...steps].sort(([a], [b]) => (a < b ? -1 : 1));
  const outcome = sorted.map(([key, { attempts: _, ...rest }]) => ({ key, ...rest }));
  return {
    outcome: digest({ run, steps: outcome }),
    history: digest({ run, steps: sorted.map(([key, step]) => ({ key, ...step })) }),
  };
}

function change(steps: Map<string, StepOutcome>, key: string, part: Partial<StepOutcome>): void {
  const step = steps.get(key);
  if (step) Object.assign(step, part);
}

const digest = (value: Json): string => hash('sha256', canonicalJson(value));

/**
 * Returns the history in an order that does not depend on timing: the start of the run, the events of the run as a
 * whole, the events of each step in topological order (by copy, attempt and position), and the end of the run. `seq`
 * becomes the position in this order, so two runs that did the same work differ only in times and run id.
 */
export function canonicalOrder(history: readonly HistoryEvent[]): readonly HistoryEvent[] {
  const positions = positionsOf(history);
  const end = history.findLast(isRunEnd);
  const ranked = history.map(event => ({
    event,
    position: event === end ? Number.POSITIVE_INFINITY : positionOf(event, positions),
  }));
  ranked.sort((a, b) =>
    a.position !== b.position
      ? a.position - b.position
      : byWorkers(a.event, b.event) ||
        (a.event.attempt ?? 0) - (b.event.attempt ?? 0) ||
        a.event.seq - b.event.seq,
  );
  return ranked.map(({ event }, index) => ({ ...event, seq: index + 1 }));
}

function positionsOf(history: readonly HistoryEvent[]): ReadonlyMap<string, number> {
  const positions = new Map<string, number>();
  for (const event of history) {
    if ((event.type === 'run.started' || event.type === 'run.resumed') && event.data.steps) {
      positions.clear();
      event.data.steps.forEach((path, index) => {
        positions.set(path, index);
      });
    }
  }
  return positions;
}

const positionOf = (event: HistoryEvent, positions: ReadonlyMap<string, number>): number =>
  event.step === undefined ? -1 : (positions.get(definitionPath(event.step)) ?? positions.size);

/** Compares events of one step: the step itself comes first, then copy by copy, at every depth. */
function byWorkers(a: HistoryEvent, b: HistoryEvent): number {
  if (a.worker === undefined && b.worker === undefined && a.step === b.step) return 0;
  const [left, right] = [workersOf(a), workersOf(b)];
  const at = left.findIndex((worker, index) => worker !== right[index]);
  if (at === -1) return left.length - right.length;
  return (left[at] ?? -1) - (right[at] ?? -1);
}

const workersOf = (event: HistoryEvent): readonly number[] =>
  Array.from(unitOfEvent(event)?.matchAll(/:(\d+)/g) ?? [], ([, worker]) => Number(worker));
