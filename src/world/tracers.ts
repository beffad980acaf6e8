import type { Tracer } from './trace.ts';

/** Tells all of them, in this order, what each of them wants to know. */
export function allTracers(tracers: readonly Partial<Tracer>[]): Tracer {
  const [granted, settled] = [wanting(tracers, 'granted'), wanting(tracers, 'settled')];
  return {
    granted: (request, place) => {
      for (const tracer of granted) tracer.granted(request, place);
    },
    settled: (request, place, outcome) => {
      for (const tracer of settled) tracer.settled(request, place, outcome);
    },
  };
}

const wanting = <What extends keyof Tracer>(
  tracers: readonly Partial<Tracer>[],
  what: What,
): readonly Pick<Tracer, What>[] =>
  tracers.filter((tracer): tracer is Pick<Tracer, What> => tracer[what] !== undefined);
