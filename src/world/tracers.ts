import type { Tracer } from './trace.ts';

/** Tells all of them, in this order. */
export const allTracers = (tracers: readonly Tracer[]): Tracer => ({
  granted: (request, place) => {
    for (const tracer of tracers) tracer.granted(request, place);
  },
  settled: (request, place, outcome) => {
    for (const tracer of tracers) tracer.settled(request, place, outcome);
  },
});
