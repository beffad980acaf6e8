import type { EffectDefinition, EffectOutcome, Keys } from './effect.ts';
import { type RecordedEntry, type Recording, witnessOf } from './recording/recording.ts';

/** The part of a request for an effect that tracers see. */
export interface TracedRequest {
  readonly lane: { readonly name: string };
  readonly effect: EffectDefinition<unknown, unknown>;
  readonly args: unknown;
  readonly keys: Keys;
}

/** Phase of an entry in the schedule. A short effect is one entry, a long one is two: its start and its end. */
export type Phase = 'short' | 'begin' | 'end';

/** Position of an entry: `n` among all entries, `i` within its lane, both from 0. */
export interface EntryPlace {
  readonly n: number;
  readonly i: number;
  readonly phase: Phase;
}

/** Observes every effect, in the order in which they are granted. Must not throw. */
export interface Tracer {
  /** A short effect is about to be performed, or a long one begins. */
  granted(request: TracedRequest, position: EntryPlace): void;
  /**
   * The effect ended. `position` is a new one (`end`) for a long effect that had begun, and the one passed to
   * `granted` for a short effect. An effect that was cancelled before it was granted gets a new position.
   */
  settled(request: TracedRequest, position: EntryPlace, outcome: EffectOutcome): void;
}

/** Name of an entry on tapes, such as `session.next.begin`. */
export const entryName = ({ name }: { readonly name: string }, phase: Phase): string =>
  phase === 'short' ? name : `${name}.${phase}`;

/** The part of the arguments that is compared, as data. */
export const tapedArgs = ({
  effect,
  args,
}: {
  readonly effect: EffectDefinition<unknown, unknown>;
  readonly args: unknown;
}): unknown => (effect.taped?.args ? effect.taped.args(args) : args);

/** The outcome with the part of its result that is compared, as data. */
export const tapedOutcome = (
  effect: EffectDefinition<unknown, unknown>,
  outcome: EffectOutcome,
): EffectOutcome =>
  outcome.kind === 'ok' && effect.taped?.result
    ? { kind: 'ok', value: effect.taped.result(outcome.value) }
    : outcome;

/** A tracer that observes only some effects or only one of the two calls. */
export interface ChoosyTracer extends Partial<Tracer> {
  /** Names of the effects to observe. Defaults to all. */
  readonly of?: ReadonlySet<string> | undefined;
}

/** Combines tracers. Each is called in this order, for the effects that it observes. */
export function allTracers(tracers: readonly ChoosyTracer[]): Tracer {
  const [granted, settled] = [byEffect(tracers, 'granted'), byEffect(tracers, 'settled')];
  return {
    granted: (request, position) => {
      for (const tracer of granted(request.effect.name)) tracer.granted(request, position);
    },
    settled: (request, position, outcome) => {
      for (const tracer of settled(request.effect.name)) tracer.settled(request, position, outcome);
    },
  };
}

/** Returns a lookup of the tracers that observe an effect, by its name. */
function byEffect<What extends keyof Tracer>(tracers: readonly ChoosyTracer[], what: What) {
  const known = new Map<string, readonly Pick<Tracer, What>[]>();
  const observes = (tracer: ChoosyTracer): tracer is ChoosyTracer & Pick<Tracer, What> =>
    tracer[what] !== undefined;
  return (name: string): readonly Pick<Tracer, What>[] => {
    const found = known.get(name);
    if (found) return found;
    const chosen = tracers.filter(observes).filter(({ of }) => of?.has(name) ?? true);
    known.set(name, chosen);
    return chosen;
  };
}

/** Renumbers entries from 0, for a tracer that sees only some of them. */
export function renumbered(tracer: Tracer): Tracer {
  let count = 0;
  /** New numbers of granted entries that are not settled yet, by their original number. */
  const inProgress = new Map<number, number>();
  const placed = (position: EntryPlace, n: number): EntryPlace => ({ ...position, n });
  return {
    granted: (request, position) => {
      const n = count++;
      if (position.phase !== 'begin') inProgress.set(position.n, n);
      tracer.granted(request, placed(position, n));
    },
    settled: (request, position, outcome) => {
      const n = inProgress.get(position.n) ?? count++;
      inProgress.delete(position.n);
      tracer.settled(request, placed(position, n), outcome);
    },
  };
}

interface Recorder {
  readonly tracer: Tracer;
  /** Returns everything traced so far. */
  recording(): Recording;
}

/** Creates a tracer that records into memory. Values are copied, as the data that a tape would contain. */
export function createRecorder(): Recorder {
  const entries: RecordedEntry[] = [];
  const pending = (request: TracedRequest, { n, i, phase }: EntryPlace): RecordedEntry => ({
    n,
    lane: request.lane.name,
    i,
    op: entryName(request.effect, phase),
    ...(phase === 'end' ? {} : { keys: copy(request.keys), args: copy(tapedArgs(request)) }),
  });
  return {
    tracer: {
      granted: (request, position) => {
        entries[position.n] = pending(request, position);
      },
      settled: (request, position, outcome) => {
        const entry = entries[position.n] ?? pending(request, position);
        entries[position.n] = {
          ...entry,
          outcome: copy(tapedOutcome(request.effect, outcome)) as EffectOutcome,
        };
      },
    },
    recording: () => ({ entries: [...entries], witness: witnessOf(entries) }),
  };
}

const copy = <Value>(value: Value): Value =>
  value === undefined ? value : (JSON.parse(JSON.stringify(value)) as Value);
