import type { Tracer } from '../effects/tracer.ts';

/** A tracer that leaves out what it does not want to know. */
export interface ChoosyTracer extends Partial<Tracer> {
  /** The names of the effects that it is told of; all of them unless it is said. */
  readonly of?: ReadonlySet<string> | undefined;
}

/** Tells all of them, in this order, what each of them wants to know. */
export function allTracers(tracers: readonly ChoosyTracer[]): Tracer {
  const [granted, settled] = [byEffect(tracers, 'granted'), byEffect(tracers, 'settled')];
  return {
    granted: (request, place) => {
      for (const tracer of granted(request.effect.name)) tracer.granted(request, place);
    },
    settled: (request, place, outcome) => {
      for (const tracer of settled(request.effect.name)) tracer.settled(request, place, outcome);
    },
  };
}

/** Who is told of an effect, by its name. */
function byEffect<What extends keyof Tracer>(tracers: readonly ChoosyTracer[], what: What) {
  const known = new Map<string, readonly Pick<Tracer, What>[]>();
  const wanting = (tracer: ChoosyTracer): tracer is ChoosyTracer & Pick<Tracer, What> =>
    tracer[what] !== undefined;
  return (name: string): readonly Pick<Tracer, What>[] => {
    const found = known.get(name);
    if (found) return found;
    const chosen = tracers.filter(wanting).filter(({ of }) => of?.has(name) ?? true);
    known.set(name, chosen);
    return chosen;
  };
}
