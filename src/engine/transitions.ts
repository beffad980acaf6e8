import type { HistoryEvent } from '../core/events.ts';
import type { NodeState } from './state/step-state.ts';

/** An event that concerns a step. */
export type StepEvent = Exclude<
  HistoryEvent,
  { type: `run.${string}` | 'cancel.requested' | 'signal.received' }
>;

/** Whether the event can follow what the step has been through, in a run that is going on. */
export function isPossible(event: StepEvent, state: NodeState): boolean {
  switch (event.type) {
    case 'step.started':
      return state.unmet === 0 && (state.status === 'pending' || isRetried(state));
    case 'step.skipped':
      return state.status === 'pending';
    case 'step.interrupted':
      return state.status === 'running';
    case 'step.resumed':
      return state.status === 'woken';
    case 'step.failed':
    case 'step.cancelled':
    case 'step.retrying':
      return state.active || state.interrupted;
    case 'timer.set':
      return state.active && typeof event.data.timer === 'number';
    case 'approval.given':
      return state.status === 'waiting' && state.approval !== undefined;
    case 'fanout.expanded':
      return state.status === 'running' && state.node.fanOut !== undefined && state.workers === undefined;
    case 'selection.made':
      return state.active && state.workers?.open === 0;
    case 'step.paused':
      return state.status === 'running';
    case 'workspace.created':
    case 'workspace.saved':
    case 'session.started':
    case 'session.named':
    case 'session.ended':
    case 'landing.started':
    case 'landing.ended':
    case 'landing.parked':
    case 'transition.taken':
      return state.active;
    case 'step.completed':
    case 'step.suspended':
    case 'timer.fired':
    case 'approval.requested':
      return state.active;
  }
}

const isRetried = ({ status, timers }: NodeState): boolean =>
  status === 'woken' && timers?.has('retry') === true;
