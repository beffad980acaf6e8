import { type HistoryEvent, type NewEvent, toEpochMs } from '../../core/index.ts';
import type { RecordedEntry } from '../../effects/recording/index.ts';
import type { RecordedActivity } from '../../engine/recording/index.ts';
import { unitOf } from '../../engine/state/index.ts';
import type { PinnedBase } from '../../engine/step/index.ts';
import type { WorktreeState } from '../../git/delta/index.ts';
import type { MoveOrder, PrepareOrder, Repository } from '../../git/index.ts';
import type { MoveEnd, PrepareResult } from '../../git/landing/index.ts';
import { type CutSegment, type RunSegment, refused, runAgain } from './segments.ts';

/**
 * Adds the final workspace state to work that a dying process left unfinished. Its journal does not hold that state, so
 * it is taken from the next process, which found it in the workspace or committed it.
 */
export async function withLeftovers(
  segments: readonly CutSegment[],
  repository: Repository | undefined,
): Promise<readonly CutSegment[]> {
  if (!repository) return segments;
  return Promise.all(
    segments.map(async (segment, index) => {
      const next = segments[index + 1];
      if (!segment.killedAfter) return segment;
      const left = segment.activities.map(async activity => {
        const { before, after } = activity;
        if (after !== null || before === null) return activity;
        const found =
          foundIn(next, activity) ?? (await committedBy([segment, next], activity, { before, repository }));
        return found ? { ...activity, after: found } : activity;
      });
      return { ...segment, activities: await Promise.all(left) };
    }),
  );
}

/** Prefers the recording of the same role: other roles start later and see what that role has changed by then. */
function foundIn(
  segment: RunSegment | undefined,
  { role, task }: RecordedActivity,
): WorktreeState | undefined {
  const ofTask = (segment?.activities ?? [])
    .filter(each => each.task === task && each.before !== null)
    .toSorted((a, b) => a.order - b.order || (a.role < b.role ? -1 : 1));
  return (ofTask.find(each => each.role === role) ?? ofTask[0])?.before ?? undefined;
}

async function committedBy(
  segments: readonly (RunSegment | undefined)[],
  { task }: RecordedActivity,
  { before, repository }: { readonly before: WorktreeState; readonly repository: Repository },
): Promise<WorktreeState | undefined> {
  const entries = segments.flatMap(segment => segment?.entries ?? []);
  const path = pathOf(entries, task);
  const outcome =
    path === undefined
      ? undefined
      : segments.map(segment => savedIn(segment?.entries ?? [], path)).find(Boolean);
  if (outcome?.kind !== 'ok') return undefined;
  const { commit } = outcome.value as { readonly commit: string };
  const { code, stdout } = await repository.git.run(['show', '--no-patch', '--format=%T %P', commit, '--']);
  const [tree, parent] = stdout.trim().split(' ');
  if (code !== 0 || tree === undefined) return undefined;
  // Either the commit holds the changes that were left uncommitted, or the work had been committed before the crash.
  if (parent === before.head.commit) return { ...before, tree };
  return { ...before, tree, head: { ...before.head, commit }, index: { tree, intentToAdd: [] } };
}

interface WorkspaceTarget {
  readonly path: string;
  readonly unit: { readonly step: string; readonly worker?: number | undefined };
}

const pathOf = (entries: RunSegment['entries'], task: string): string | undefined =>
  entries
    .filter(({ op }) => op === 'workspace.create.begin')
    .map(({ args }) => args as WorkspaceTarget)
    .find(({ unit }) => unitOf(unit.step, unit.worker) === task)?.path;

/**
 * Checks that no other process changed the target branch or the history of the run: a case only plays the processes of
 * the run, one after another. Throws CAPTURE_REFUSED.
 */
export function refuseOthers(
  segments: readonly CutSegment[],
  { base, history }: { readonly base: PinnedBase | undefined; readonly history: readonly HistoryEvent[] },
): void {
  if (base) refuseMovedBranch(segments, base);
  refuseUnknownEvents(segments, history);
}

function refuseMovedBranch(segments: readonly CutSegment[], base: PinnedBase): void {
  let tip = base.commit;
  for (const { kind, onto, commit } of segments.flatMap(landingsOf)) {
    if (onto !== base.ref) {
      throw refused(
        `the run landed on ${onto}, but ${base.ref} was checked out`,
        `check out ${onto}: git switch ${onto}; then ${runAgain}`,
      );
    }
    if (kind === 'found' && commit !== tip)
      throw halfLanded(segments, commit) ?? movedByOthers(onto, tip, commit);
    if (kind === 'moved') tip = commit;
  }
}

/** A process that dies after moving the branch leaves no record of the move, so a replay cannot repeat it. */
function halfLanded(segments: readonly CutSegment[], found: string): Error | undefined {
  const wasItsOwn = segments
    .filter(({ killedAfter }) => killedAfter !== undefined)
    .flatMap(landingsOf)
    .some(({ kind, commit }) => kind === 'prepared' && commit === found);
  return wasItsOwn
    ? refused(
        'the process died during a landing, and its journal does not show how far the landing got',
        runAgain,
      )
    : undefined;
}

const movedByOthers = (onto: string, tip: string, found: string): Error =>
  refused(
    `another process moved ${onto} during the run: it was at ${short(tip)}, and the landing found it at ${short(found)}`,
    `a case does not record other processes; run the workflow again while nothing else changes ${onto}, and capture that run`,
  );

/** One observation or move of the target branch by a landing. */
export interface LandingTrace {
  /** `found`: the branch was at the commit; `prepared`: the landing was about to move it there; `moved`: it did. */
  readonly kind: 'found' | 'prepared' | 'moved';
  readonly onto: string;
  readonly commit: string;
}

export const landingsOf = ({ entries }: CutSegment): readonly LandingTrace[] =>
  entries.flatMap(landingTraces);

/** Traces in one recorded effect. */
export function landingTraces({
  op,
  args,
  outcome,
}: Pick<RecordedEntry, 'op' | 'args' | 'outcome'>): readonly LandingTrace[] {
  if (outcome?.kind !== 'ok') return [];
  if (op === 'land.prepare')
    return preparedTraces((args as PrepareOrder).onto, outcome.value as PrepareResult);
  if (op !== 'land.move' || (outcome.value as MoveEnd).kind !== 'moved') return [];
  const { onto, ready } = args as MoveOrder;
  return [{ kind: 'moved', onto, commit: ready.commit }];
}

function preparedTraces(onto: string, prepared: PrepareResult): readonly LandingTrace[] {
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

interface AppendedEvents {
  readonly runId: string;
  readonly events: readonly NewEvent[];
}

function refuseUnknownEvents(segments: readonly CutSegment[], history: readonly HistoryEvent[]): void {
  const [first] = history;
  if (!first) return;
  const known = segments
    .flatMap(({ entries }) => entries)
    .filter(({ op, outcome }) => /^store\.(create|append)$/.test(op) && outcome?.kind === 'ok')
    .map(({ args }) => args as AppendedEvents)
    .filter(({ runId }) => runId === first.runId)
    .reduce((sum, { events }) => sum + events.length, 0);
  const unknown = history.length - known;
  if (unknown <= 0) return;
  throw refused(
    `${unknown} of the ${history.length} events of run ${first.runId} are missing from its journals`,
    `another process wrote them, such as \`reprise cancel\`, or the process of the run died while writing them; ${runAgain}`,
  );
}

/** Evidence of what happened after a process died. */
interface AftermathContext {
  /** Recordings of the processes that continued the run, in order. */
  readonly later: readonly RunSegment[];
  /** Number of events in the history of the run. */
  readonly events: number;
  readonly repository: Repository | undefined;
}

/**
 * Adds the outcomes of effects that took place although the process died before recording them. Store writes, workspace
 * creations and commits leave traces that prove it; a replay performs them again.
 */
export async function withLaterEvents(
  segment: RunSegment,
  afterwards: AftermathContext,
): Promise<RunSegment> {
  if (segment.exit !== undefined) return segment;
  const entries = segment.entries.map(entry => withCommittedEvents(entry, afterwards));
  for (const begin of openWork(segment.entries)) {
    const outcome = await outcomeOfWork(begin, afterwards);
    const { lane } = begin;
    const i = entries.filter(entry => entry.lane === lane).length;
    const op = begin.op.replace(/begin$/, 'end');
    if (outcome) entries.push({ n: entries.length, lane, i, op, outcome });
  }
  return { ...segment, entries };
}

interface AppendRequest {
  readonly runId: string;
  readonly owner: string;
  readonly expectedSeq: number;
  readonly events: readonly NewEvent[];
}

function withCommittedEvents(entry: RecordedEntry, { later, events }: AftermathContext): RecordedEntry {
  if (entry.outcome || !/^store\.(create|append)$/.test(entry.op)) return entry;
  const { expectedSeq = 0, events: requested, owner } = entry.args as AppendRequest;
  const seen = later.flatMap(segment => segment.entries).find(({ op }) => op === 'store.read')?.outcome;
  const count = seen?.kind === 'ok' ? Number(seen.value) : events;
  if (expectedSeq + requested.length > count) return entry;
  const value = entry.op === 'store.create' ? { epoch: 1, incarnation: owner } : null;
  return { ...entry, outcome: { kind: 'ok', value } };
}

/** Workspace creations and commits that began and have no recorded end. */
function openWork(entries: readonly RecordedEntry[]): readonly RecordedEntry[] {
  const ended = new Set(
    entries.filter(({ op }) => op.endsWith('.end')).map(({ lane, i }) => `${lane}:${i - 1}`),
  );
  return entries.filter(
    ({ op, lane, i }) => /^workspace\.(create|commit)\.begin$/.test(op) && !ended.has(`${lane}:${i}`),
  );
}

interface FolderTarget {
  readonly path: string;
}

/**
 * Looks in later recordings for proof that a workspace or commit was made. A commit belongs to the process that died if
 * its timestamp is the one that the process asked for.
 */
async function outcomeOfWork(
  { op, args }: RecordedEntry,
  { later, repository }: AftermathContext,
): Promise<RecordedEntry['outcome']> {
  const { path } = args as FolderTarget;
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

/** Outcome of the first commit in the folder. */
const savedIn = (entries: readonly RecordedEntry[], path: string): RecordedEntry['outcome'] =>
  firstIn(entries, { op: 'workspace.commit.begin', path });

function firstIn(
  entries: readonly RecordedEntry[],
  { op, path }: { readonly op: string; readonly path: string },
): RecordedEntry['outcome'] {
  const begin = entries.find(entry => entry.op === op && (entry.args as FolderTarget).path === path);
  return entries.find(({ lane, i }) => begin && lane === begin.lane && i === begin.i + 1)?.outcome;
}
