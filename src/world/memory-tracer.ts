import type { RecordedEntry, Recording } from '../effects/recording/recording.ts';
import {
  type EntryPlace,
  entryName,
  type TracedRequest,
  type Tracer,
  tapedArgs,
  tapedOutcome,
} from '../effects/tracer.ts';
import type { Outcome } from './outcome.ts';
import { witnessOf } from './witness.ts';

export interface Recorder {
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
