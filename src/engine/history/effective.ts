import type { HistoryEvent } from '../../core/events.ts';
import { definitionPath, type Graph, outerUnits, siblingUnit, unitOfEvent } from '../state/graph.ts';

/** What still counts of a history. */
interface EffectiveHistory {
  readonly events: readonly HistoryEvent[];
  /** How often units were tried whose earlier life no longer counts. */
  readonly attempts: ReadonlyMap<string, number>;
}

/** Leaves out what later resumes took back: ends of the run, the cancellation that led there, and invalidated steps. */
export function effectiveHistory(history: readonly HistoryEvent[]): EffectiveHistory {
  const attempts = new Map<string, number>();
  if (!takesBack(history)) return { events: history, attempts };
  let events: HistoryEvent[] = [];
  for (const event of history) {
    if (event.type === 'run.resumed' && (event.data.invalidated || events.some(isRunEnd))) {
      const left = withoutUnits(events, new Set(event.data.invalidated));
      for (const [unit, attempt] of left.attempts) attempts.set(unit, attempt);
      events = [...left.events];
    }
    events.push(event);
  }
  return { events, attempts };
}

/** Whether a resume began by leaving something out. Most do not, and then the history is long and need not be copied. */
function takesBack(history: readonly HistoryEvent[]): boolean {
  let ended = false;
  for (const event of history) {
    if (event.type === 'run.resumed' && (event.data.invalidated || ended)) return true;
    ended ||= isRunEnd(event);
  }
  return false;
}

/**
 * Takes back the events of some units, and how the run ended. A unit whose inside is taken back only in part keeps its
 * last start, and of what is inside only what came after that: earlier lives of it led nowhere.
 */
export function withoutUnits(
  history: readonly HistoryEvent[],
  invalidated: ReadonlySet<string>,
): EffectiveHistory {
  const reopened = reopenedUnits(history, invalidated);
  const attempts = new Map<string, number>();
  const events: HistoryEvent[] = [];
  for (const event of history) {
    const unit = unitOfEvent(event);
    if (stillCounts(event, { unit, invalidated, reopened })) events.push(event);
    else if (unit !== undefined && event.attempt !== undefined) attempts.set(unit, event.attempt);
  }
  // The start that is kept is the first of the attempts that count from now on.
  for (const [unit, { attempt = 1 }] of reopened) attempts.set(unit, attempt - 1);
  return { events, attempts };
}

export const isRunEnd = ({ type }: HistoryEvent): boolean =>
  type === 'run.completed' || type === 'run.failed' || type === 'run.cancelled';

/** For each invalidated unit with something inside that stays: the last of its starts. */
function reopenedUnits(
  events: readonly HistoryEvent[],
  invalidated: ReadonlySet<string>,
): ReadonlyMap<string, HistoryEvent> {
  const staying = new Set<string>();
  const units = new Set(events.map(unitOfEvent));
  for (const unit of units) {
    if (unit !== undefined && !invalidated.has(unit))
      for (const outer of outerUnits(unit)) staying.add(outer);
  }
  const starts = new Map<string, HistoryEvent>();
  for (const event of events) {
    const unit = unitOfEvent(event);
    if (event.type === 'step.started' && unit !== undefined && invalidated.has(unit) && staying.has(unit))
      starts.set(unit, event);
  }
  return starts;
}

interface Place {
  readonly unit: string | undefined;
  readonly invalidated: ReadonlySet<string>;
  readonly reopened: ReadonlyMap<string, HistoryEvent>;
}

function stillCounts(event: HistoryEvent, { unit, invalidated, reopened }: Place): boolean {
  const { seq } = event;
  if (unit === undefined) return !isRunEnd(event) && event.type !== 'cancel.requested';
  if (invalidated.has(unit)) {
    const start = reopened.get(unit);
    return start === event || (start !== undefined && event.type === 'fanout.expanded' && seq > start.seq);
  }
  return reopened.size === 0 || outerUnits(unit).every(outer => seq > (reopened.get(outer)?.seq ?? 0));
}

/** Wall time during which somebody worked on the run. */
export function activeMs(history: readonly HistoryEvent[], toMs: (at: string) => number): number {
  let total = 0;
  let since: string | undefined;
  let last: string | undefined;
  for (const { type, at } of history) {
    if (type === 'run.started' || type === 'run.resumed') {
      if (since !== undefined && last !== undefined) total += toMs(last) - toMs(since);
      since = at;
    }
    last = at;
  }
  return since !== undefined && last !== undefined ? total + toMs(last) - toMs(since) : total;
}

/**
 * What has to run again when the given units do: they, what is inside them and what comes after them. What they are
 * inside of is opened again, without the rest of what is inside, and what comes after that runs again too.
 * `known`: the units that history tells of.
 */
export function affectedBy(
  graph: Graph,
  roots: Iterable<string>,
  known: ReadonlySet<string>,
): ReadonlySet<string> {
  const whole = new Set<string>();
  const reopened = new Set<string>();
  const queue = [...roots];
  for (let unit = queue.pop(); unit !== undefined; unit = queue.pop()) {
    if (whole.has(unit)) continue;
    whole.add(unit);
    queue.push(...dependantsOf(graph, unit));
    for (const outer of outerUnits(unit)) {
      if (reopened.has(outer)) break;
      reopened.add(outer);
      queue.push(...dependantsOf(graph, outer));
    }
  }
  for (const unit of known) if (outerUnits(unit).some(outer => whole.has(outer))) whole.add(unit);
  return new Set([...whole, ...reopened]);
}

/** Nothing comes after a single worker: what does comes after all of them. */
function dependantsOf(graph: Graph, unit: string): readonly string[] {
  if (/:\d+$/.test(unit)) return [];
  const dependants = graph.byPath.get(definitionPath(unit))?.dependants ?? [];
  return dependants.map(({ step }) => siblingUnit(unit, step.id));
}

/** What differs between a definition and the one that a history was made with. */
interface DefinitionChanges {
  /** Units that ran, or were skipped, and are defined otherwise now. */
  readonly changed: readonly string[];
  /** Units that ran and no longer exist. */
  readonly removed: readonly string[];
}

/** Steps that never ran may change freely: nothing depends on what they were. The last start of a step counts. */
export function findChanges(graph: Graph, history: readonly HistoryEvent[]): DefinitionChanges {
  const changed = new Set<string>();
  const removed = new Set<string>();
  for (const event of history) {
    if (event.type !== 'step.started' && event.type !== 'step.skipped') continue;
    const unit = unitOfEvent(event);
    if (unit === undefined) continue;
    const node = graph.byPath.get(definitionPath(unit));
    if (!node) removed.add(unit);
    else if (node.step.fingerprint !== event.data.fingerprint) changed.add(unit);
    else if (changed.size > 0) changed.delete(unit);
  }
  return { changed: [...changed], removed: [...removed] };
}
