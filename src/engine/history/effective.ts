import { canonicalJson, type HistoryEvent, RepriseError } from '../../core/index.ts';
import { decide } from '../run/planner.ts';
import { type RunResult, resultOf } from '../run/result.ts';
import { definitionPath, type Graph, outerUnits, siblingUnit, unitOfEvent } from '../state/graph.ts';
import { RunState } from '../state/run-state.ts';

/** The part of a history that still counts. */
interface EffectiveHistory {
  readonly events: readonly HistoryEvent[];
  /** Number of attempts of each unit whose earlier events no longer count. */
  readonly attempts: ReadonlyMap<string, number>;
}

/**
 * Drops everything that later resumes retracted: run ends, the cancellations that led to them, and invalidated steps.
 */
export function effectiveHistory(history: readonly HistoryEvent[]): EffectiveHistory {
  const attempts = new Map<string, number>();
  if (!retractsEvents(history)) return { events: history, attempts };
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

/** Whether a resume retracts events. Most do not, and then a long history need not be copied. */
function retractsEvents(history: readonly HistoryEvent[]): boolean {
  let ended = false;
  for (const event of history) {
    if (event.type === 'run.resumed' && (event.data.invalidated || ended)) return true;
    ended ||= isRunEnd(event);
  }
  return false;
}

/**
 * Drops the events of the invalidated units and the end of the run. A unit that keeps some of the units inside it keeps
 * its last start, and of the inner events only those after that start.
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
  // The start that is kept counts as the first attempt from now on.
  for (const [unit, { attempt = 1 }] of reopened) attempts.set(unit, attempt - 1);
  return { events, attempts };
}

export const isRunEnd = ({ type }: HistoryEvent): boolean =>
  type === 'run.completed' || type === 'run.failed' || type === 'run.cancelled';

/** Returns the last start of each invalidated unit that contains a kept unit. */
function reopenedUnits(
  events: readonly HistoryEvent[],
  invalidated: ReadonlySet<string>,
): ReadonlyMap<string, HistoryEvent> {
  const kept = new Set<string>();
  const units = new Set(events.map(unitOfEvent));
  for (const unit of units) {
    if (unit !== undefined && !invalidated.has(unit)) for (const outer of outerUnits(unit)) kept.add(outer);
  }
  const starts = new Map<string, HistoryEvent>();
  for (const event of events) {
    const unit = unitOfEvent(event);
    if (event.type === 'step.started' && unit !== undefined && invalidated.has(unit) && kept.has(unit))
      starts.set(unit, event);
  }
  return starts;
}

interface EffectiveContext {
  readonly unit: string | undefined;
  readonly invalidated: ReadonlySet<string>;
  readonly reopened: ReadonlyMap<string, HistoryEvent>;
}

function stillCounts(event: HistoryEvent, { unit, invalidated, reopened }: EffectiveContext): boolean {
  const { seq } = event;
  if (unit === undefined) return !isRunEnd(event) && event.type !== 'cancel.requested';
  if (invalidated.has(unit)) {
    const start = reopened.get(unit);
    return start === event || (start !== undefined && event.type === 'fanout.expanded' && seq > start.seq);
  }
  return reopened.size === 0 || outerUnits(unit).every(outer => seq > (reopened.get(outer)?.seq ?? 0));
}

/** Wall time during which a process owned the run. */
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
 * Returns the units that must rerun if the roots do: the roots, everything inside them and everything that depends on
 * them. A unit that contains a root is reopened without rerunning the other units inside it, and its dependants rerun
 * too. `known` holds the units that have events in the history.
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

/** A single copy has no dependants: they depend on the whole fan-out. */
function dependantsOf(graph: Graph, unit: string): readonly string[] {
  if (/:\d+$/.test(unit)) return [];
  const dependants = graph.byPath.get(definitionPath(unit))?.dependants ?? [];
  return dependants.map(({ step }) => siblingUnit(unit, step.id));
}

/** Differences between the current definition and the one that a history was recorded with. */
interface DefinitionChanges {
  /** Units that ran or were skipped and whose definition has changed. */
  readonly changed: readonly string[];
  /** Units that ran and no longer exist. */
  readonly removed: readonly string[];
}

/** Compares the last start of each step with its definition. Steps that never ran may change freely. */
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

export interface ReplayResult {
  readonly result: RunResult;
  readonly history: readonly HistoryEvent[];
  /** Whether the run has ended. */
  readonly ended: boolean;
}

/**
 * Folds a history. Throws HISTORY_DIVERGED if it does not match the graph or its end does not follow from its steps.
 */
export function replayHistory(graph: Graph, runId: string, history: readonly HistoryEvent[]): ReplayResult {
  const { changed, removed } = findChanges(graph, effectiveHistory(history).events);
  const differences = [
    ...(changed.length > 0 ? [`${changed.join(', ')} changed since it ran`] : []),
    ...(removed.length > 0 ? [`${removed.join(', ')} no longer exists`] : []),
  ];
  if (differences.length > 0) {
    throw new RepriseError(
      'HISTORY_DIVERGED',
      `run ${runId} does not match the definition: ${differences.join('; ')}`,
      { hint: `to rerun the changed steps: reprise resume ${runId} --rerun-changed` },
    );
  }
  const last = history.at(-1);
  const ended = last !== undefined && isRunEnd(last);
  if (ended) checkEnd(foldHistory(graph, history.slice(0, -1)), last);
  return { result: resultOf(runId, foldHistory(graph, history)), history, ended };
}

function checkEnd(state: RunState, recorded: HistoryEvent): void {
  const decision = decide(state, { places: Number.POSITIVE_INFINITY });
  const derived = decision?.kind === 'end' ? decision.events[0] : undefined;
  const same =
    derived?.type === recorded.type &&
    canonicalJson(derived.data as never) === canonicalJson(recorded.data as never);
  if (!same) {
    throw new RepriseError(
      'HISTORY_DIVERGED',
      derived?.type === recorded.type
        ? `the history ends with ${recorded.type}, but its steps lead to another result`
        : `the history ends with ${recorded.type}, but its steps lead to ${derived?.type ?? 'unfinished work'}`,
      { hint: 'the workflow may have new steps; start a new run' },
    );
  }
}

/** Returns the state that a history leads to. */
export function foldHistory(graph: Graph, history: readonly HistoryEvent[]): RunState {
  const { events, attempts } = effectiveHistory(history);
  const state = new RunState(graph, attempts);
  for (const event of events) state.apply(event);
  state.lastSeq = history.at(-1)?.seq ?? 0;
  return state;
}
