import type { HistoryEvent } from '../core/event.ts';

/** What still counts of a history. */
export interface EffectiveHistory {
  readonly events: readonly HistoryEvent[];
  /** How often steps were tried whose earlier life no longer counts. */
  readonly attempts: ReadonlyMap<string, number>;
}

/** Leaves out what later resumes took back: ends of the run, the cancellation that led there, and invalidated steps. */
export function effectiveHistory(history: readonly HistoryEvent[]): EffectiveHistory {
  const attempts = new Map<string, number>();
  if (!history.some(({ type }) => type === 'run.resumed')) return { events: history, attempts };
  let events: HistoryEvent[] = [];
  for (const event of history) {
    if (event.type === 'run.resumed' && (event.data.invalidated || events.some(isRunEnd))) {
      const left = withoutSteps(events, new Set(event.data.invalidated));
      for (const [step, attempt] of left.attempts) attempts.set(step, attempt);
      events = [...left.events];
    }
    events.push(event);
  }
  return { events, attempts };
}

/**
 * Takes back the events of some steps, and how the run ended. A step whose child workflow is taken back only in part
 * keeps its last start, and of what is inside only what came after that: earlier lives of the child led nowhere.
 */
export function withoutSteps(
  history: readonly HistoryEvent[],
  invalidated: ReadonlySet<string>,
): EffectiveHistory {
  const reopened = reopenedSteps(history, invalidated);
  const attempts = new Map<string, number>();
  const events: HistoryEvent[] = [];
  for (const event of history) {
    const { step, attempt } = event;
    if (stillCounts(event, invalidated, reopened)) events.push(event);
    else if (step !== undefined && attempt !== undefined) attempts.set(step, attempt);
  }
  // The start that is kept is the first of the attempts that count from now on.
  for (const { step, attempt = 1 } of reopened.values())
    if (step !== undefined) attempts.set(step, attempt - 1);
  return { events, attempts };
}

export const isRunEnd = ({ type }: HistoryEvent): boolean =>
  type === 'run.completed' || type === 'run.failed' || type === 'run.cancelled';

/** For each invalidated step with inner steps that stay: the last of its starts. */
function reopenedSteps(
  events: readonly HistoryEvent[],
  invalidated: ReadonlySet<string>,
): ReadonlyMap<string, HistoryEvent> {
  const staying = new Set<string>();
  for (const { step } of events) {
    if (step !== undefined && !invalidated.has(step))
      for (const outer of outerSteps(step)) staying.add(outer);
  }
  const starts = new Map<string, HistoryEvent>();
  for (const event of events) {
    const { type, step } = event;
    if (type === 'step.started' && step !== undefined && invalidated.has(step) && staying.has(step))
      starts.set(step, event);
  }
  return starts;
}

function stillCounts(
  event: HistoryEvent,
  invalidated: ReadonlySet<string>,
  reopened: ReadonlyMap<string, HistoryEvent>,
): boolean {
  const { step, seq } = event;
  if (step === undefined) return !isRunEnd(event) && event.type !== 'cancel.requested';
  if (invalidated.has(step)) return reopened.get(step) === event;
  return reopened.size === 0 || outerSteps(step).every(outer => seq > (reopened.get(outer)?.seq ?? 0));
}

/** `a/b` and `a` for `a/b/c`. */
function outerSteps(path: string): readonly string[] {
  const outer: string[] = [];
  for (let slash = path.lastIndexOf('/'); slash > 0; slash = path.lastIndexOf('/', slash - 1))
    outer.push(path.slice(0, slash));
  return outer;
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
