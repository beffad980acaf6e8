import { toEpochMs } from '../core/time.ts';
import type { LaneRef } from '../effects/world.ts';
import type { TimerName } from './messages.ts';
import type { NodeState } from './state/step-state.ts';

interface Due {
  readonly timer: TimerName;
  readonly at: number;
}

/**
 * The timers of a run: each is a lane that sleeps. Which ones there should be follows from the state alone, so a
 * resumed run has the same ones, with the same moments.
 */
export class Timers {
  readonly #lanes = new Map<NodeState, Map<TimerName, LaneRef>>();
  readonly #start: (node: NodeState, due: Due) => LaneRef;

  constructor(start: (node: NodeState, due: Due) => LaneRef) {
    this.#start = start;
  }

  /** Starts what is missing; gives back the lanes that are no longer wanted. */
  sync(node: NodeState): readonly LaneRef[] {
    const running = this.#lanes.get(node);
    const wanted = timersOf(node);
    if (!running && wanted.length === 0) return [];
    const lanes = running ?? new Map<TimerName, LaneRef>();
    const unwanted = [...lanes].filter(([timer]) => !wanted.some(due => due.timer === timer));
    for (const [timer] of unwanted) lanes.delete(timer);
    for (const due of wanted) if (!lanes.has(due.timer)) lanes.set(due.timer, this.#start(node, due));
    if (lanes.size > 0) this.#lanes.set(node, lanes);
    else this.#lanes.delete(node);
    return unwanted.map(([, lane]) => lane);
  }

  /** The lane has ended by itself. */
  forget(node: NodeState, timer: TimerName): void {
    this.#lanes.get(node)?.delete(timer);
  }
}

/** What the step waits for the clock to say, and when. */
export function timersOf(node: NodeState): readonly Due[] {
  const timeout = node.node.fanOut ? {} : node.node.step.timeout;
  const due: Due[] = [];
  if (!node.active || node.timedOut) return due;
  for (const { timer, setAt, ms } of node.timers?.values() ?? []) {
    if (node.status === 'waiting' || typeof timer === 'number')
      due.push({ timer, at: toEpochMs(setAt) + ms });
  }
  if (timeout.attemptMs !== undefined && node.status === 'running' && node.attemptStartedAt) {
    due.push({ timer: 'attempt', at: toEpochMs(node.attemptStartedAt) + timeout.attemptMs - node.workedMs });
  }
  if (timeout.stepMs !== undefined && node.startedAt)
    due.push({ timer: 'step', at: toEpochMs(node.startedAt) + timeout.stepMs });
  return due;
}
