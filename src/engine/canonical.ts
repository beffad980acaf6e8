import type { HistoryEvent } from '../core/events.ts';
import { isRunEnd } from './history/effective.ts';
import { definitionPath, unitOfEvent } from './unit.ts';

/**
 * The history in an order that does not depend on timing: the start of the run, what concerns the run as a whole,
 * then step by step in their stable topological order, by worker, attempt and position, and the end of the run last.
 * Two runs that did the same work differ in times and run id only, so `seq` is the place in this order.
 */
export function canonicalOrder(history: readonly HistoryEvent[]): readonly HistoryEvent[] {
  const places = placesOf(history);
  const end = history.findLast(isRunEnd);
  const ranked = history.map(event => ({
    event,
    place: event === end ? Number.POSITIVE_INFINITY : placeOf(event, places),
  }));
  ranked.sort((a, b) =>
    a.place !== b.place
      ? a.place - b.place
      : byWorkers(a.event, b.event) ||
        (a.event.attempt ?? 0) - (b.event.attempt ?? 0) ||
        a.event.seq - b.event.seq,
  );
  return ranked.map(({ event }, index) => ({ ...event, seq: index + 1 }));
}

function placesOf(history: readonly HistoryEvent[]): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (const event of history) {
    if ((event.type === 'run.started' || event.type === 'run.resumed') && event.data.steps) {
      places.clear();
      event.data.steps.forEach((path, index) => {
        places.set(path, index);
      });
    }
  }
  return places;
}

const placeOf = (event: HistoryEvent, places: ReadonlyMap<string, number>): number =>
  event.step === undefined ? -1 : (places.get(definitionPath(event.step)) ?? places.size);

/** Events of one step: those of the step itself first, then worker by worker, at every depth. */
function byWorkers(a: HistoryEvent, b: HistoryEvent): number {
  if (a.worker === undefined && b.worker === undefined && a.step === b.step) return 0;
  const [left, right] = [workersOf(a), workersOf(b)];
  const at = left.findIndex((worker, index) => worker !== right[index]);
  if (at === -1) return left.length - right.length;
  return (left[at] ?? -1) - (right[at] ?? -1);
}

const workersOf = (event: HistoryEvent): readonly number[] =>
  Array.from(unitOfEvent(event)?.matchAll(/:(\d+)/g) ?? [], ([, worker]) => Number(worker));
