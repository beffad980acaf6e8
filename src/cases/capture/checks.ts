import type { HistoryEvent, NewEvent } from '../../core/events.ts';
import { toEpochMs } from '../../core/time.ts';
import type { RecordedEntry } from '../../effects/recording/recording.ts';
import type { Recording as RecordedActivity } from '../../engine/recording/session-file.ts';
import { unitOf } from '../../engine/state/graph.ts';
import type { PinnedBase } from '../../engine/step/base.ts';
import type { WorktreeState } from '../../git/delta/state.ts';
import type { MoveEnd, Prepared } from '../../git/landing/landing.ts';
import type { MoveOrder, PrepareOrder } from '../../git/orders.ts';
import type { Repository } from '../../git/repository.ts';
import { type CutLeg, type Leg, refused, runAgain } from './legs.ts';

/**
 * Nobody saw what was left in a workspace by the last that a process did there before it died; but the next process saw
 * what it found there, or committed it. That is what is taken to have been left.
 */
export async function withWhatWasLeft(
  legs: readonly CutLeg[],
  repository: Repository | undefined,
): Promise<readonly CutLeg[]> {
  if (!repository) return legs;
  return Promise.all(
    legs.map(async (leg, index) => {
      const next = legs[index + 1];
      if (!leg.killedAfter) return leg;
      const left = leg.activities.map(async activity => {
        const { before, after } = activity;
        if (after !== null || before === null) return activity;
        const found =
          foundIn(next, activity) ?? (await committedBy([leg, next], activity, { before, repository }));
        return found ? { ...activity, after: found } : activity;
      });
      return { ...leg, activities: await Promise.all(left) };
    }),
  );
}

/** The same role comes first: others find what that one has left by then. */
function foundIn(leg: Leg | undefined, { role, task }: RecordedActivity): WorktreeState | undefined {
  const ofTask = (leg?.activities ?? [])
    .filter(each => each.task === task && each.before !== null)
    .toSorted((a, b) => a.order - b.order || (a.role < b.role ? -1 : 1));
  return (ofTask.find(each => each.role === role) ?? ofTask[0])?.before ?? undefined;
}

async function committedBy(
  legs: readonly (Leg | undefined)[],
  { task }: RecordedActivity,
  { before, repository }: { readonly before: WorktreeState; readonly repository: Repository },
): Promise<WorktreeState | undefined> {
  const entries = legs.flatMap(leg => leg?.entries ?? []);
  const path = pathOf(entries, task);
  const outcome =
    path === undefined ? undefined : legs.map(leg => savedIn(leg?.entries ?? [], path)).find(Boolean);
  if (outcome?.kind !== 'ok') return undefined;
  const { commit } = outcome.value as { readonly commit: string };
  const { code, stdout } = await repository.git.run(['show', '--no-patch', '--format=%T %P', commit, '--']);
  const [tree, parent] = stdout.trim().split(' ');
  if (code !== 0 || tree === undefined) return undefined;
  // What was left uncommitted became that commit; or else it was all committed, and that is the commit.
  if (parent === before.head.commit) return { ...before, tree };
  return { ...before, tree, head: { ...before.head, commit }, index: { tree, intentToAdd: [] } };
}

interface Order {
  readonly path: string;
  readonly unit: { readonly step: string; readonly worker?: number | undefined };
}

const pathOf = (entries: Leg['entries'], task: string): string | undefined =>
  entries
    .filter(({ op }) => op === 'workspace.create.begin')
    .map(({ args }) => args as Order)
    .find(({ unit }) => unitOf(unit.step, unit.worker) === task)?.path;

/**
 * A case has its processes one after another and knows nothing of any other, so nobody else may have changed what they
 * share: the branches that the run landed on, and its history. Throws CAPTURE_REFUSED.
 */
export function refuseOthers(
  legs: readonly CutLeg[],
  { base, history }: { readonly base: PinnedBase | undefined; readonly history: readonly HistoryEvent[] },
): void {
  if (base) refuseMovedBranch(legs, base);
  refuseUnknownEvents(legs, history);
}

function refuseMovedBranch(legs: readonly CutLeg[], base: PinnedBase): void {
  let tip = base.commit;
  for (const { kind, onto, commit } of legs.flatMap(landingsOf)) {
    if (onto !== base.ref) {
      throw refused(
        `the run landed on ${onto}, while ${base.ref} was checked out`,
        `check out ${onto} first; then ${runAgain}`,
      );
    }
    if (kind === 'found' && commit !== tip)
      throw halfLanded(legs, commit) ?? movedByOthers(onto, tip, commit);
    if (kind === 'moved') tip = commit;
  }
}

/** The branch moves before anybody is told, and whether it did cannot be done again by a replay. */
function halfLanded(legs: readonly CutLeg[], found: string): Error | undefined {
  const wasItsOwn = legs
    .filter(({ killedAfter }) => killedAfter !== undefined)
    .flatMap(landingsOf)
    .some(({ kind, commit }) => kind === 'prepared' && commit === found);
  return wasItsOwn
    ? refused(
        'the process died in the middle of a landing, and what it had done of it by then is in no journal',
        runAgain,
      )
    : undefined;
}

const movedByOthers = (onto: string, tip: string, found: string): Error =>
  refused(
    `${onto} was moved by somebody else while the run was under way: it was at ${short(tip)}, and the landing found ${short(found)}`,
    `a case knows of no other process; run the workflow again while nothing else changes ${onto}, and capture that run`,
  );

/** What landings saw and did of the branch that they land on, in order. */
export interface LandingTrace {
  /** `found`: the branch was there; `prepared`: it would go there; `moved`: it went there. */
  readonly kind: 'found' | 'prepared' | 'moved';
  readonly onto: string;
  readonly commit: string;
}

export const landingsOf = ({ entries }: CutLeg): readonly LandingTrace[] => entries.flatMap(landingTraces);

/** What one entry says of it. */
export function landingTraces({
  op,
  args,
  outcome,
}: Pick<RecordedEntry, 'op' | 'args' | 'outcome'>): readonly LandingTrace[] {
  if (outcome?.kind !== 'ok') return [];
  if (op === 'land.prepare') return preparedTraces((args as PrepareOrder).onto, outcome.value as Prepared);
  if (op !== 'land.move' || (outcome.value as MoveEnd).kind !== 'moved') return [];
  const { onto, ready } = args as MoveOrder;
  return [{ kind: 'moved', onto, commit: ready.commit }];
}

function preparedTraces(onto: string, prepared: Prepared): readonly LandingTrace[] {
  switch (prepared.kind) {
    case 'ready':
      return [
        { kind: 'found', onto, commit: prepared.from },
        { kind: 'prepared', onto, commit: prepared.commit },
      ];
    case 'conflict':
      return [{ kind: 'found', onto, commit: prepared.onto }];
    case 'nothing':
      return [{ kind: 'found', onto, commit: prepared.commit }];
    case 'in-the-way':
      return [];
  }
}

const short = (commit: string): string => commit.slice(0, 10);

interface Appended {
  readonly runId: string;
  readonly events: readonly NewEvent[];
}

function refuseUnknownEvents(legs: readonly CutLeg[], history: readonly HistoryEvent[]): void {
  const [first] = history;
  if (!first) return;
  const known = legs
    .flatMap(({ entries }) => entries)
    .filter(({ op, outcome }) => /^store\.(create|append)$/.test(op) && outcome?.kind === 'ok')
    .map(({ args }) => args as Appended)
    .filter(({ runId }) => runId === first.runId)
    .reduce((sum, { events }) => sum + events.length, 0);
  const unknown = history.length - known;
  if (unknown <= 0) return;
  throw refused(
    `${unknown} of the ${history.length} events of run ${first.runId} are in no journal of it`,
    `another process wrote them, such as \`reprise cancel\` or a program of your own, or its process died in that moment; ${runAgain}`,
  );
}

/** What is known of the time after a process died. */
interface Afterwards {
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
const savedIn = (entries: readonly RecordedEntry[], path: string): RecordedEntry['outcome'] =>
  firstIn(entries, { op: 'workspace.commit.begin', path });

function firstIn(
  entries: readonly RecordedEntry[],
  { op, path }: { readonly op: string; readonly path: string },
): RecordedEntry['outcome'] {
  const begin = entries.find(entry => entry.op === op && (entry.args as InFolder).path === path);
  return entries.find(({ lane, i }) => begin && lane === begin.lane && i === begin.i + 1)?.outcome;
}
