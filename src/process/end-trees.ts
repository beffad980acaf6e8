import { setTimeout as delay } from 'node:timers/promises';
import { isSameProcess } from './identity.ts';
import type { Marker, ProcessEntry, ProcessIdentity } from './process-table.ts';
import { findTree } from './tree.ts';

export interface TreeRoot extends ProcessIdentity {
  /**
   * It was a child of this process until now. What is left of its process group is then its own even if it has ended
   * itself; after a crash nobody can tell, because both the pid and the group may have been given again since.
   */
  readonly ownGroup?: boolean;
}

export interface EndTreesOptions {
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
