import type { HistoryEvent, NewEvent } from '../../core/events.ts';
import { type RecordedEntry, topLane } from '../../effects/recording/recording.ts';
import type { Tracer } from '../../effects/tracer.ts';
import { unitOfEvent } from '../../engine/state/graph.ts';
import type { Batch, NewRun } from '../../store/port.ts';

/** The history of one run of a case. */
export interface CaseHistory {
  readonly runId: string;
  /** The steps of the case that worked on it. */
  readonly steps: readonly string[];
  readonly events: readonly HistoryEvent[];
}

/** Puts the histories of all runs of a case together from what was written to the store. */
export class Histories {
  readonly #runs = new Map<string, { readonly steps: Set<string>; readonly events: HistoryEvent[] }>();

  /** In the order in which they began. */
  all(): readonly CaseHistory[] {
    return [...this.#runs].map(([runId, { steps, events }]) => ({
      runId,
      steps: [...steps],
      events: [...events],
    }));
  }

  /** What was written in the lane. */
  take(lane: string, effect: string, args: unknown): readonly NewEvent[] {
    if (effect === 'store.create') return this.#add(lane, args as NewRun, 0);
    if (effect !== 'store.append') return [];
    const batch = args as Batch;
    return this.#add(lane, batch, batch.expectedSeq);
  }

  #add(lane: string, { runId, at, events }: Pick<Batch, 'runId' | 'at' | 'events'>, last: number) {
    const run = this.#runs.get(runId) ?? { steps: new Set(), events: [] };
    this.#runs.set(runId, run);
    run.steps.add(topLane(lane));
    for (const [index, event] of events.entries())
      run.events[last + index] = { ...event, seq: last + index + 1, runId, at } as HistoryEvent;
    return events;
  }
}

/** As it was recorded. */
export function recordedHistories(entries: readonly RecordedEntry[]): readonly CaseHistory[] {
  const histories = new Histories();
  for (const { lane, op, args, outcome } of entries)
    if (outcome?.kind === 'ok') histories.take(lane, op, args);
  return histories.all();
}

/** Follows a play. `onStarted` is told of each unit that starts, and in which step of the case. */
export const historyTracer = (
  histories: Histories,
  normalise: (value: unknown) => unknown,
  onStarted: (step: string, unit: string) => void,
): Tracer => ({
  granted: () => {},
  settled: ({ effect, args, lane }, _place, outcome) => {
    if (outcome.kind !== 'ok' || !/^store\.(create|append)$/.test(effect.name)) return;
    for (const event of histories.take(lane.name, effect.name, normalise(args))) {
      const unit = unitOfEvent(event);
      if (event.type === 'step.started' && unit !== undefined) onStarted(topLane(lane.name), unit);
    }
  },
});
