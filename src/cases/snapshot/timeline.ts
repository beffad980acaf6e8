import { conflicts, type Keys } from '../../effects/index.ts';
import { type RecordedEntry, topLane } from '../../effects/recording/index.ts';
import { filled, filledBefore, truncate } from '../../terminal/index.ts';

const columns = 80;
const gap = 2;
/** Minimum width of a column, below which truncated effect names are ambiguous. */
const narrowest = 12;

/**
 * Returns the effects that share a key with another command, in order: a number, and a column for each command. Keys
 * that only one command uses, or that all commands only read, have no line.
 */
export function timelineLines(entries: readonly RecordedEntry[]): readonly string[] {
  const shared = sharedEntries(entries).map((entry, index) => ({ ...entry, n: index + 1 }));
  if (shared.length === 0) return ['no two commands share a key'];
  const lanes = [...new Set(entries.map(({ lane }) => topLane(lane)))].filter(lane =>
    shared.some(entry => topLane(entry.lane) === lane),
  );
  const numbers = Math.max(...shared.map(({ n }) => String(n).length));
  const width = Math.floor((columns - numbers) / lanes.length) - gap;
  return width < narrowest ? listed(shared, lanes, numbers) : inColumns(shared, { lanes, numbers, width });
}

function inColumns(
  shared: readonly SharedEntry[],
  {
    lanes,
    numbers,
    width,
  }: { readonly lanes: readonly string[]; readonly numbers: number; readonly width: number },
): readonly string[] {
  const line = (number: string, cells: readonly string[]) =>
    [filledBefore(number, numbers), ...cells.map(cell => filled(cell, width))]
      .join(' '.repeat(gap))
      .trimEnd();
  return [
    line('', lanes),
    ...shared.map(entry =>
      line(
        String(entry.n),
        lanes.map(lane => (lane === topLane(entry.lane) ? cellText(entry, width) : '')),
      ),
    ),
  ];
}

/** Lists effects without columns, for more commands than fit side by side. */
function listed(
  shared: readonly SharedEntry[],
  lanes: readonly string[],
  numbers: number,
): readonly string[] {
  const name = Math.min(24, Math.max(...lanes.map(lane => lane.length)));
  return shared.map(entry => {
    const start = `${filledBefore(String(entry.n), numbers)}  ${filled(topLane(entry.lane), name)}  `;
    return `${start}${cellText(entry, columns - start.length)}`;
  });
}

/** Returns the name of the effect, followed by its shared keys if there is room. */
function cellText({ op, met }: SharedEntry, width: number): string {
  const long = met.length === 0 ? op : `${op} (${met.join(', ')})`;
  return long.length <= width ? long : truncate(op, width);
}

interface SharedEntry {
  readonly n: number;
  readonly lane: string;
  readonly op: string;
  /** Keys shared with another command. Empty for the end of an effect, which does not repeat the keys of its start. */
  readonly met: readonly string[];
}

function sharedEntries(entries: readonly RecordedEntry[]): readonly SharedEntry[] {
  const shared = sharedKeys(entries);
  const begun = new Set<string>();
  const endOf = ({ lane, op }: RecordedEntry, phase: string) => `${lane}\n${op.slice(0, -phase.length)}`;
  return entries.flatMap(entry => {
    const { n, lane, op } = entry;
    if (op.endsWith('.end') && begun.delete(endOf(entry, '.end'))) return [{ n, lane, op, met: [] }];
    const met = keysOf(entry.keys).filter(key => shared.has(key));
    if (met.length === 0) return [];
    if (op.endsWith('.begin')) begun.add(endOf(entry, '.begin'));
    return [{ n, lane, op, met }];
  });
}

/** Keys that stand for all runs or all workers. Commands that only update their own rows do not share them. */
const looksAtAll: ReadonlySet<string> = new Set([
  'store:',
  'lease:',
  'status:',
  'abandoned:',
  'worker:',
  'name:',
]);

/** Returns the keys that at least two commands use and at least one of them writes. */
function sharedKeys(entries: readonly RecordedEntry[]): ReadonlySet<string> {
  const touchedBy = new Map<string, Set<string>>();
  const written = new Set<string>();
  for (const { lane, keys } of entries) {
    for (const key of keys?.writes ?? []) written.add(key);
    for (const key of keysOf(keys)) {
      const lanes = touchedBy.get(key) ?? new Set();
      touchedBy.set(key, lanes.add(topLane(lane)));
    }
  }
  const keys = [...touchedBy.keys()].filter(key => !looksAtAll.has(key));
  return new Set(
    keys.filter(key => {
      const met = keys.filter(other => conflicts({ writes: [key] }, { writes: [other] }));
      const steps = new Set(met.flatMap(other => [...(touchedBy.get(other) ?? [])]));
      return steps.size > 1 && met.some(other => written.has(other));
    }),
  );
}

const keysOf = (keys: Keys | undefined): readonly string[] => [
  ...new Set([...(keys?.writes ?? []), ...(keys?.reads ?? [])]),
];
