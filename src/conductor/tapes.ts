import type { RecordedEntry, Recording } from '../effects/recording/recording.ts';

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
