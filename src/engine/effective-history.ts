import type { HistoryEvent } from '../core/event.ts';

/** What still counts of a history. */
export interface EffectiveHistory {
  readonly events: readonly HistoryEvent[];
  /** How often steps were tried whose earlier life no longer counts. */
  readonly attempts: ReadonlyMap<string, number>;
}

/**
 * Leaves out what later resumes took back: ends of the run, the cancellation that led there, and the events of
 * invalidated steps. A step whose child workflow was invalidated only in part keeps its start.
 */
export function effectiveHistory(history: readonly HistoryEvent[]): EffectiveHistory {
  const attempts = new Map<string, number>();
  let events: HistoryEvent[] = [];
  for (const event of history) {
    if (event.type === 'run.resumed' && (event.data.invalidated || events.some(isRunEnd))) {
      const invalidated = new Set(event.data.invalidated);
      for (const { step, attempt } of events) {
        if (step !== undefined && attempt !== undefined && invalidated.has(step)) attempts.set(step, attempt);
      }
      const reopened = reopenedSteps(events, invalidated);
      events = events.filter(earlier => stillCounts(earlier, invalidated, reopened));
    }
    events.push(event);
  }
  return { events, attempts };
}

export const isRunEnd = ({ type }: HistoryEvent): boolean =>
  type === 'run.completed' || type === 'run.failed' || type === 'run.cancelled';

/** For each invalidated step with inner steps that stay: the last of its starts. */
function reopenedSteps(events: readonly HistoryEvent[], invalidated: ReadonlySet<string>): ReadonlyMap<string, number> {
  const staying = new Set<string>();
  for (const { step } of events) {
    if (step === undefined || invalidated.has(step)) continue;
    for (let slash = step.lastIndexOf('/'); slash > 0; slash = step.lastIndexOf('/', slash - 1)) staying.add(step.slice(0, slash));
  }
  const starts = new Map<string, number>();
  for (const { type, step, seq } of events) {
    if (type === 'step.started' && step !== undefined && invalidated.has(step) && staying.has(step)) starts.set(step, seq);
  }
  return starts;
}

function stillCounts(event: HistoryEvent, invalidated: ReadonlySet<string>, reopened: ReadonlyMap<string, number>): boolean {
  if (event.step === undefined) return !isRunEnd(event) && event.type !== 'cancel.requested';
  return !invalidated.has(event.step) || reopened.get(event.step) === event.seq;
}

/** Wall time during which somebody worked on the run. */
export function activeMs(history: readonly HistoryEvent[], toMs: (at: string) => number): number {
  let total = 0;
  let since: string | undefined;
  let last: string | undefined;
  for (const { type, at } of history) {
    if (type === 'run.started' || type === 'run.resumed') {
      if (since !== undefined && last !== undefined) total += toMs(last) - toMs(since);
      since = at;
    }
    last = at;
  }
  return since !== undefined && last !== undefined ? total + toMs(last) - toMs(since) : total;
}
