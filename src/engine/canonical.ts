import type { HistoryEvent } from '../core/event.ts';
import { isRunEnd } from './effective-history.ts';

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
      : (a.event.worker ?? -1) - (b.event.worker ?? -1) ||
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
  event.step === undefined ? -1 : (places.get(event.step) ?? places.size);
