import { type RecordedEntry, topLane, type Witness } from '../effects/recording/recording.ts';

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
