import type { Keys, Outcome } from '../effect.ts';

/** One entry of the order, with what was asked and answered. */
export interface RecordedEntry {
  /** Its place in the order, from 0, without gaps. */
  readonly n: number;
  /** Full name: `worker_a/engine#0/3`. */
  readonly lane: string;
  /** Its place within the lane, from 0, without gaps. */
  readonly i: number;
  /** The effect's name; of a long one with `.begin` or `.end`. */
  readonly op: string;
  /** Of a short effect and of a begin. */
  readonly keys?: Keys | undefined;
  /** What of the arguments is compared; of a short effect and of a begin. */
  readonly args?: unknown;
  /** Absent for a begin, and for what a crash cut off. */
  readonly outcome?: Outcome | undefined;
}

/** How much went on at once, so that a replay in which less does is noticed. */
export interface Witness {
  /** Lanes at the top (the steps of a case) that were open at the same time. */
  readonly mostOpen: number;
  /** Long effects that were under way at the same time. */
  readonly mostInFlight: number;
  /** How often the order goes from one lane at the top to another. */
  readonly switches: number;
}

/** All that was asked and answered, in its order. Placeholders of paths and secrets are still in it. */
export interface Recording {
  readonly entries: readonly RecordedEntry[];
  readonly witness: Witness;
}

/** The lane at the top that a lane is below of: the step of a case. */
export const topLane = (lane: string): string => {
  const end = lane.indexOf('/');
  return end < 0 ? lane : lane.slice(0, end);
};

/** How much went on at once, as far as the order tells: a lane at the top is open from its first entry to its last. */
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
    // A begin that was cancelled before it was granted has an outcome, and no end.
    if (op.endsWith('.begin') && !outcome) mostInFlight = Math.max(mostInFlight, ++inFlight);
    else if (op.endsWith('.end')) inFlight--;
  }
  return { mostOpen, mostInFlight, switches };
}

/** A recording, by place and by lane. */
export interface Tapes {
  /** All entries, by their place in the order. */
  readonly score: readonly RecordedEntry[];
  /** The entries of one lane; empty if it has none. */
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

/** The entry of that name that is closest to a place on the tape, the later of two. */
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
