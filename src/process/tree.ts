import { type Marker, type ProcessEntry, type ProcessIdentity, processTable } from './process-table.ts';

export interface TreeQuery {
  readonly roots: readonly ProcessIdentity[];
  /** Process groups that belong to the tree although their leaders may have ended. */
  readonly groups?: Iterable<number>;
  /** Finds what left both tree and group: children of children that have ended, and those that called `setsid`. */
  readonly marked?: Marker | undefined;
  /** Nobody but these and what comes from them can have the marker: whoever is older need not be asked for it. */
  readonly markedFrom?: readonly ProcessIdentity[] | undefined;
}

/**
 * What is alive of the roots, their descendants, the process groups that any of these lead, and the marked ones with
 * all that is theirs. Never this process, its ancestors or pid 1, and never a root whose pid now names another process.
 */
export function findTree(query: TreeQuery, table = processTable): readonly ProcessEntry[] {
  const entries = table.all();
  const untouchable = selfAndAncestors(entries);
  const candidates = entries.filter(entry => entry.state !== 'zombie' && !untouchable.has(entry.pid));
  const starts = new Map(query.roots.map(root => [root.pid, root.processStart]));
  const groups = groupsStillOwn(new Set(query.groups), entries, starts);

  const found = new Set(
    candidates.filter(
      ({ pid, processStart, group }) => starts.get(pid) === processStart || groups.has(group),
    ),
  );
  // A marker that says nothing is on every process of the machine.
  if (query.marked && Object.keys(query.marked).length > 0) {
    const { markedFrom = [] } = query;
    const isOlder = (entry: ProcessEntry) =>
      markedFrom.length > 0 && markedFrom.every(first => table.startedBefore(entry, first));
    const young = candidates.filter(entry => !isOlder(entry));
    for (const entry of table.marked(young, query.marked)) found.add(entry);
  }

  const byParent = groupBy(candidates, entry => entry.parent);
  const byGroup = groupBy(candidates, entry => entry.group);
  for (const { pid } of found) {
    for (const child of byParent.get(pid) ?? []) found.add(child);
    for (const member of byGroup.get(pid) ?? []) found.add(member);
  }
  return [...found];
}

/** The processes whose environment has all of the marker, and what belongs to them. */
export const markedWith = (marker: Marker): readonly ProcessEntry[] =>
  findTree({ roots: [], marked: marker });

/** A leader's pid is not given again while its group has members: if it names another process, they are strangers. */
function groupsStillOwn(
  groups: ReadonlySet<number>,
  entries: readonly ProcessEntry[],
  starts: ReadonlyMap<number, string>,
): ReadonlySet<number> {
  const reused = entries.filter(
    ({ pid, processStart }) => starts.has(pid) && starts.get(pid) !== processStart,
  );
  const strangers = new Set(reused.map(entry => entry.pid));
  return new Set([...groups].filter(group => !strangers.has(group)));
}

function selfAndAncestors(entries: readonly ProcessEntry[]): ReadonlySet<number> {
  const parents = new Map(entries.map(entry => [entry.pid, entry.parent]));
  const line = new Set([0, 1]);
  for (
    let pid: number | undefined = process.pid;
    pid !== undefined && !line.has(pid);
    pid = parents.get(pid)
  ) {
    line.add(pid);
  }
  return line;
}

function groupBy(entries: readonly ProcessEntry[], key: (entry: ProcessEntry) => number) {
  const groups = new Map<number, ProcessEntry[]>();
  for (const entry of entries) {
    const group = groups.get(key(entry));
    if (group) group.push(entry);
    else groups.set(key(entry), [entry]);
  }
  return groups;
}
