import { setTimeout as delay } from 'node:timers/promises';
import {
  isSameProcess,
  type Marker,
  type ProcessEntry,
  type ProcessIdentity,
  processTable,
} from './table.ts';

interface TreeQuery {
  readonly roots: readonly ProcessIdentity[];
  /** Process groups that belong to the tree, even if their leaders have ended. */
  readonly groups?: Iterable<number>;
  /**
   * Marker that finds processes outside the tree and its groups: orphaned grandchildren and those that called
   * `setsid`.
   */
  readonly marked?: Marker | undefined;
  /** Processes that, with their descendants, are the only ones with the marker. Older processes are not checked. */
  readonly markedFrom?: readonly ProcessIdentity[] | undefined;
}

/**
 * Finds the live processes among the roots and the marked processes, their descendants, and the process groups that any
 * of these lead. Never includes this process, its ancestors, pid 1, or a root whose pid now belongs to another process.
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
  // An empty marker would match every process on the machine.
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

/** Processes whose environment has the whole marker, with their descendants and groups. */
export const markedWith = (marker: Marker): readonly ProcessEntry[] =>
  findTree({ roots: [], marked: marker });

/** Removes reused groups. A pid is not reused while its group has members, so a reused pid leads another group. */
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

export interface TreeRoot extends ProcessIdentity {
  /**
   * Whether the root is or was a child of this process. If so, its process group still belongs to it even if it has
   * ended. After a crash this is unknown, because both the pid and the group may have been reused.
   */
  readonly ownGroup?: boolean;
}

interface EndTreesOptions {
  readonly roots: readonly TreeRoot[];
  readonly marked?: Marker | undefined;
  /** Time between SIGTERM and SIGKILL; 0 sends SIGKILL at once. */
  readonly graceMs: number;
}

/** Result of stopping process trees. */
export interface EndedTrees {
  /** Processes that ended, each with the strongest signal that it was sent. */
  readonly ended: readonly (ProcessIdentity & { readonly by: EndingSignal })[];
  /** Processes that were still alive several seconds after SIGKILL, or that belong to another user. */
  readonly survived: readonly ProcessIdentity[];
}

type EndingSignal = 'SIGTERM' | 'SIGKILL';

interface Target extends ProcessIdentity {
  by: EndingSignal | undefined;
  refused: boolean;
}

const killPatienceMs = 5000;
const pollMs = { first: 10, longest: 100 };

/**
 * Stops processes with all their descendants: SIGTERM first, SIGKILL after the grace period. Searches for new processes
 * until none is left. Resolves when all have ended, or when no signal has an effect; never rejects.
 */
export async function endTrees(
  { roots, marked, graceMs }: EndTreesOptions,
  table = processTable,
): Promise<EndedTrees> {
  const targets = new Map<string, Target>();
  const groups = new Set(roots.flatMap(root => (root.ownGroup ? root.pid : [])));
  // The marker of a child of this process is unique to it. After a crash, older processes may have the same marker.
  const markedFrom = roots.every(root => root.ownGroup) ? roots : [];
  const began = performance.now();
  let wasEmpty = false;
  for (let pauseMs = pollMs.first; ; pauseMs = Math.min(pauseMs * 2, pollMs.longest)) {
    const alive = findTree({ roots: [...roots, ...targets.values()], groups, marked, markedFrom }, table);
    const elapsedMs = performance.now() - began;
    for (const entry of alive) {
      const target = targetFor(entry, targets);
      signal(entry, target, elapsedMs < graceMs ? 'SIGTERM' : 'SIGKILL');
      // A group leader may end before the next search and leave members that only the group identifies.
      if (entry.group === entry.pid) groups.add(entry.pid);
    }
    // Prevents a race: a process that forks and ends during a search is missed together with its child. The child is
    // there when the next search begins.
    if (alive.length === 0 && targets.size > 0 && !wasEmpty) {
      wasEmpty = true;
      continue;
    }
    wasEmpty = false;
    const allRefused = elapsedMs >= graceMs && alive.every(entry => targetFor(entry, targets).refused);
    if (alive.length === 0 || allRefused || elapsedMs >= graceMs + killPatienceMs)
      return summary(targets, alive);
    await delay(pauseMs);
  }
}

function targetFor(entry: ProcessEntry, targets: Map<string, Target>): Target {
  const key = `${entry.pid} ${entry.processStart}`;
  const known = targets.get(key);
  if (known) return known;
  const target = { pid: entry.pid, processStart: entry.processStart, by: undefined, refused: false };
  targets.set(key, target);
  return target;
}

/** Sends each signal only once, so the process can clean up. A stopped process needs SIGCONT to receive it. */
function signal(entry: ProcessEntry, target: Target, name: EndingSignal): void {
  // Check right before the signal: since the table was read, the process may have ended and its pid been reused.
  if (!isSameProcess(target)) return;
  if (target.by !== name) target.refused = !send(target.pid, name);
  if (!target.refused) target.by = name;
  if (entry.state === 'stopped') send(target.pid, 'SIGCONT');
}

function send(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH';
  }
}

function summary(targets: ReadonlyMap<string, Target>, alive: readonly ProcessEntry[]): EndedTrees {
  const left = new Set(alive.map(entry => `${entry.pid} ${entry.processStart}`));
  const identity = ({ pid, processStart }: Target) => ({ pid, processStart });
  const all = [...targets];
  return {
    ended: all.flatMap(([key, target]) =>
      target.by && !left.has(key) ? { ...identity(target), by: target.by } : [],
    ),
    survived: all.flatMap(([key, target]) => (left.has(key) ? identity(target) : [])),
  };
}
