import type { Leg } from '../../cases/capture/legs.ts';
import type { NewEvent } from '../../core/events.ts';
import { toEpochMs } from '../../core/time.ts';
import type { RecordedEntry } from '../../effects/recording/recording.ts';
import type { Repository } from '../../git/repository.ts';

/** What is known of the time after a process died. */
export interface Afterwards {
  /** What other processes did for the run, in their order. */
  readonly later: readonly Leg[];
  /** How many events the run has by now. */
  readonly events: number;
  readonly repository: Repository | undefined;
}

/**
 * What was under way when a process died may have been done all the same, without its knowing. Commits to the store,
 * workspaces and commits of work leave a trace by which that can be told; they are made again in a replay.
 */
export async function withWhatWasDone(leg: Leg, afterwards: Afterwards): Promise<Leg> {
  if (leg.exit !== undefined) return leg;
  const entries = leg.entries.map(entry => withCommittedEvents(entry, afterwards));
  for (const begin of openWork(leg.entries)) {
    const outcome = await outcomeOfWork(begin, afterwards);
    const { lane } = begin;
    const i = entries.filter(entry => entry.lane === lane).length;
    const op = begin.op.replace(/begin$/, 'end');
    if (outcome) entries.push({ n: entries.length, lane, i, op, outcome });
  }
  return { ...leg, entries };
}

interface Asked {
  readonly runId: string;
  readonly owner: string;
  readonly expectedSeq: number;
  readonly events: readonly NewEvent[];
}

function withCommittedEvents(entry: RecordedEntry, { later, events }: Afterwards): RecordedEntry {
  if (entry.outcome || !/^store\.(create|append)$/.test(entry.op)) return entry;
  const { expectedSeq = 0, events: asked, owner } = entry.args as Asked;
  const seen = later.flatMap(leg => leg.entries).find(({ op }) => op === 'store.read')?.outcome;
  const count = seen?.kind === 'ok' ? Number(seen.value) : events;
  if (expectedSeq + asked.length > count) return entry;
  const value = entry.op === 'store.create' ? { epoch: 1, incarnation: owner } : null;
  return { ...entry, outcome: { kind: 'ok', value } };
}

/** Workspaces and commits of work that were begun to be made, and not known to be there. */
function openWork(entries: readonly RecordedEntry[]): readonly RecordedEntry[] {
  const ended = new Set(
    entries.filter(({ op }) => op.endsWith('.end')).map(({ lane, i }) => `${lane}:${i - 1}`),
  );
  return entries.filter(
    ({ op, lane, i }) => /^workspace\.(create|commit)\.begin$/.test(op) && !ended.has(`${lane}:${i}`),
  );
}

interface InFolder {
  readonly path: string;
}

/** The process that went on found a workspace, or a commit; by the time of a commit it is known who made it. */
async function outcomeOfWork(
  { op, args }: RecordedEntry,
  { later, repository }: Afterwards,
): Promise<RecordedEntry['outcome']> {
  const { path } = args as InFolder;
  const outcome = later
    .map(({ entries }) => firstIn(entries, { op, path }))
    .find(found => found !== undefined);
  if (outcome?.kind !== 'ok' || !repository) return undefined;
  if (op === 'workspace.create.begin') {
    const found = outcome.value as { readonly isFound: boolean };
    return found.isFound ? { kind: 'ok', value: { ...found, isFound: false, isSetUp: false } } : undefined;
  }
  const { at } = args as { readonly at: string };
  const { commit } = outcome.value as { readonly commit: string };
  const { code, stdout } = await repository.git.run(['show', '--no-patch', '--format=%ct', commit, '--']);
  const isIts = code === 0 && Number(stdout.trim()) === Math.floor(toEpochMs(at) / 1000);
  return isIts ? outcome : undefined;
}

/** What the first commit of the work in that folder gave. */
export const savedIn = (entries: readonly RecordedEntry[], path: string): RecordedEntry['outcome'] =>
  firstIn(entries, { op: 'workspace.commit.begin', path });

function firstIn(
  entries: readonly RecordedEntry[],
  { op, path }: { readonly op: string; readonly path: string },
): RecordedEntry['outcome'] {
  const begin = entries.find(entry => entry.op === op && (entry.args as InFolder).path === path);
  return entries.find(({ lane, i }) => begin && lane === begin.lane && i === begin.i + 1)?.outcome;
}
