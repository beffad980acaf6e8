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

export interface TreeRoot extends ProcessIdentity {
  /**
   * It was a child of this process until now. What is left of its process group is then its own even if it has ended
   * itself; after a crash nobody can tell, because both the pid and the group may have been given again since.
   */
  readonly ownGroup?: boolean;
}

interface EndTreesOptions {
  readonly roots: readonly TreeRoot[];
  readonly marked?: Marker | undefined;
  /** How long they may take to end after SIGTERM; 0 sends SIGKILL at once. */
  readonly graceMs: number;
}

/** What became of the processes. */
export interface EndedTrees {
  /** With the strongest signal that each was sent. */
  readonly ended: readonly (ProcessIdentity & { readonly by: EndingSignal })[];
  /** Those that outlived SIGKILL for some seconds, or that belong to another user. */
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
 * Ends processes with all that they started: SIGTERM, then SIGKILL to what is left after the grace period, looking
 * again for new ones all the time. Resolves when none is left, or when no signal helps; never rejects.
 */
export async function endTrees({ roots, marked, graceMs }: EndTreesOptions): Promise<EndedTrees> {
  const targets = new Map<string, Target>();
  const groups = new Set(roots.flatMap(root => (root.ownGroup ? root.pid : [])));
  // The marker of a child of this process is its own; after a crash others may have it who are older.
  const markedFrom = roots.every(root => root.ownGroup) ? roots : [];
  const began = performance.now();
  for (let pauseMs = pollMs.first; ; pauseMs = Math.min(pauseMs * 2, pollMs.longest)) {
    const alive = findTree({ roots: [...roots, ...targets.values()], groups, marked, markedFrom });
    const elapsedMs = performance.now() - began;
    for (const entry of alive) {
      const target = targetFor(entry, targets);
      signal(entry, target, elapsedMs < graceMs ? 'SIGTERM' : 'SIGKILL');
      // Whoever leads a group now may end before the next look and leave members that only the group leads to.
      if (entry.group === entry.pid) groups.add(entry.pid);
    }
    const hopeless = elapsedMs >= graceMs && alive.every(entry => targetFor(entry, targets).refused);
    if (alive.length === 0 || hopeless || elapsedMs >= graceMs + killPatienceMs)
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

/** A process is asked once and then left to its clean-up; one that is stopped cannot hear until it goes on. */
function signal(entry: ProcessEntry, target: Target, name: EndingSignal): void {
  // Checked right before the signal: since the look at the table, it may have ended and its pid been given again.
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
