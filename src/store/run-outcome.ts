import type { HistoryEvent, NewEvent } from '../core/events.ts';
import type { Timestamp } from '../core/time.ts';
import type { RunStatus } from './port.ts';

export interface RunOutcome {
  readonly status: RunStatus;
  readonly endedAt: Timestamp | null;
}

/** What a batch says about the run as a whole; `undefined` if it says nothing. The last word counts. */
export function outcomeOf(events: readonly NewEvent[], at: Timestamp): RunOutcome | undefined {
  const status = events.map(event => statusAfter(event.type)).findLast(said => said !== undefined);
  return status && { status, endedAt: status === 'running' ? null : at };
}

function statusAfter(type: HistoryEvent['type']): RunStatus | undefined {
  switch (type) {
    case 'run.started':
    case 'run.resumed':
      return 'running';
    case 'run.completed':
      return 'completed';
    case 'run.failed':
      return 'failed';
    case 'run.cancelled':
      return 'cancelled';
    case 'step.started':
    case 'step.completed':
    case 'step.failed':
    case 'step.cancelled':
    case 'step.skipped':
    case 'step.retrying':
    case 'step.interrupted':
    case 'step.suspended':
    case 'step.resumed':
    case 'timer.set':
    case 'timer.fired':
    case 'approval.requested':
    case 'approval.given':
    case 'signal.received':
    case 'cancel.requested':
      return undefined;
  }
}
