import type { EffectDefinition, Keys, Outcome } from './effect.ts';
import { type RecordedEntry, type Recording, witnessOf } from './recording/recording.ts';

/** What a tracer gets to see of a request for an effect. */
export interface TracedRequest {
  readonly lane: { readonly name: string };
  readonly effect: EffectDefinition<unknown, unknown>;
  readonly args: unknown;
  readonly keys: Keys;
}

/**
 * One entry of the order in which effects were granted. A short effect is one entry, a long one two.
 * `ended` of a short effect, and of a long one that was cancelled before its begin, belongs to the same entry as `granted`.
 */
export type Phase = 'short' | 'begin' | 'end';

/** The place of an entry: `n` among all, `i` within its lane, both from 0. */
export interface EntryPlace {
  readonly n: number;
  readonly i: number;
  readonly phase: Phase;
}

/** Told of everything that crosses the boundary, in the order in which it was granted. Must not throw. */
export interface Tracer {
  /** A short effect is about to be performed, or a long one begins. */
  granted(request: TracedRequest, place: EntryPlace): void;
  /**
   * It ended. `place` is that of a new entry (`end`) for a long effect that had begun; otherwise the one that was
   * granted, or, for what was cancelled without being granted, a new one.
   */
  settled(request: TracedRequest, place: EntryPlace, outcome: Outcome): void;
}

/** `session.next.begin`: how an entry is called on tapes. */
export const entryName = ({ name }: { readonly name: string }, phase: Phase): string =>
  phase === 'short' ? name : `${name}.${phase}`;

/** What of the arguments is compared, as data. */
export const tapedArgs = ({
  effect,
  args,
}: {
  readonly effect: EffectDefinition<unknown, unknown>;
  readonly args: unknown;
}): unknown => (effect.taped?.args ? effect.taped.args(args) : args);

/** The outcome with what of a result is compared, as data. */
export const tapedOutcome = (effect: EffectDefinition<unknown, unknown>, outcome: Outcome): Outcome =>
  outcome.kind === 'ok' && effect.taped?.result
    ? { kind: 'ok', value: effect.taped.result(outcome.value) }
    : outcome;

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

interface Recorder {
  readonly tracer: Tracer;
  /** What was traced until now. */
  recording(): Recording;
}

/** Records into memory. Values are copied as the data that a tape would hold. */
export function createRecorder(): Recorder {
  const entries: RecordedEntry[] = [];
  const asked = (request: TracedRequest, { n, i, phase }: EntryPlace): RecordedEntry => ({
    n,
    lane: request.lane.name,
    i,
    op: entryName(request.effect, phase),
    ...(phase === 'end' ? {} : { keys: copy(request.keys), args: copy(tapedArgs(request)) }),
  });
  return {
    tracer: {
      granted: (request, place) => {
        entries[place.n] = asked(request, place);
      },
      settled: (request, place, outcome) => {
        const entry = entries[place.n] ?? asked(request, place);
        entries[place.n] = { ...entry, outcome: copy(tapedOutcome(request.effect, outcome)) as Outcome };
      },
    },
    recording: () => ({ entries: [...entries], witness: witnessOf(entries) }),
  };
}

const copy = <Value>(value: Value): Value =>
  value === undefined ? value : (JSON.parse(JSON.stringify(value)) as Value);
