import type { EntryPlace, Tracer } from '../effects/tracer.ts';

/** A tracer that is told of some entries only, as if there were no others: they are counted from 0 again. */
export function renumbered(tracer: Tracer): Tracer {
  let count = 0;
  /** Of what was granted and has not been settled, by its number among all. */
  const underWay = new Map<number, number>();
  const placed = (place: EntryPlace, n: number): EntryPlace => ({ ...place, n });
  return {
    granted: (request, place) => {
      const n = count++;
      if (place.phase !== 'begin') underWay.set(place.n, n);
      tracer.granted(request, placed(place, n));
    },
    settled: (request, place, outcome) => {
      const n = underWay.get(place.n) ?? count++;
      underWay.delete(place.n);
      tracer.settled(request, placed(place, n), outcome);
    },
  };
}
