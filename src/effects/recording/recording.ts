import type { EffectOutcome, Keys } from '../effect.ts';

/** One entry of the schedule, with its arguments and its outcome. */
export interface RecordedEntry {
  /** Position in the schedule, from 0, without gaps. */
  readonly n: number;
  /** Full name, such as `worker_a/engine#0/3`. */
  readonly lane: string;
  /** Position within the lane, from 0, without gaps. */
  readonly i: number;
  /** Name of the effect, with `.begin` or `.end` for a long one. */
  readonly op: string;
  /** Keys of a short effect, or of the start of a long one. */
  readonly keys?: Keys | undefined;
  /** Compared part of the arguments of a short effect, or of the start of a long one. */
  readonly args?: unknown;
  /** Outcome. Absent for the start of a long effect, and for an effect interrupted by a crash. */
  readonly outcome?: EffectOutcome | undefined;
}

/** Measure of concurrency. A replay with less concurrency than its recording fails. */
export interface Witness {
  /** Largest number of root lanes (the steps of a case) open at the same time. */
  readonly mostOpen: number;
  /** Largest number of long effects in progress at the same time. */
  readonly mostInFlight: number;
  /** Number of switches from one root lane to another. */
  readonly switches: number;
}

/** All recorded entries in their order. Paths and secrets are still placeholders. */
export interface Recording {
  readonly entries: readonly RecordedEntry[];
  readonly witness: Witness;
}

/** Returns the root of a lane, which is the step of a case. */
export const topLane = (lane: string): string => {
  const end = lane.indexOf('/');
  return end < 0 ? lane : lane.slice(0, end);
};

/** Measures the concurrency of a schedule. A root lane counts as open from its first entry to its last. */
export function witnessOf(entries: readonly RecordedEntry[]): Witness {
  const last = new Map(entries.map((entry, index) => [topLane(entry.lane), index]));
  const open = new Set<string>();
  let [mostOpen, inFlight, mostInFlight, switches] = [0, 0, 0, 0];
  for (const [index, { lane, op, outcome }] of entries.entries()) {
    const top = topLane(lane);
    const before = entries[index - 1];
    if (before && topLane(before.lane) !== top) switches++;
    mostOpen = Math.max(mostOpen, open.add(top).size);
    if (last.get(top) === index) open.delete(top);
    // A begin that was cancelled before it was granted has an outcome and no end.
    if (op.endsWith('.begin') && !outcome) mostInFlight = Math.max(mostInFlight, ++inFlight);
    else if (op.endsWith('.end')) inFlight--;
  }
  return { mostOpen, mostInFlight, switches };
}

/** A recording, indexed by position and by lane. */
export interface Tapes {
  /** All entries, by their position in the schedule. */
  readonly score: readonly RecordedEntry[];
  /** Returns the entries of one lane. */
  of(lane: string): readonly RecordedEntry[];
}

export function indexTapes({ entries }: Recording): Tapes {
  const lanes = new Map<string, RecordedEntry[]>();
  for (const entry of entries) {
    const tape = lanes.get(entry.lane);
    if (tape) tape.push(entry);
    else lanes.set(entry.lane, [entry]);
  }
  return { score: entries, of: lane => lanes.get(lane) ?? [] };
}

/** Finds the entry with that name that is closest to a position on the tape; the later one of two. */
export function nearest(
  tape: readonly RecordedEntry[],
  op: string,
  i: number,
): { readonly entry: RecordedEntry; readonly distance: number } | undefined {
  for (let away = 0; away < tape.length + i; away++) {
    for (const distance of away === 0 ? [0] : [away, -away]) {
      const entry = tape[i + distance];
      if (entry?.op === op) return { entry, distance };
    }
  }
  return undefined;
}
