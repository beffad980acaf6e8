import { type HistoryEvent, type NewEvent, nearest, RepriseError } from '../../core/index.ts';
import { definitionPath, type Graph, hasInside, outerUnits, unitOfEvent } from '../state/graph.ts';
import { affectedBy, effectiveHistory, findChanges, withoutUnits } from './effective.ts';

/**
 * Returns the units that failed, were cancelled, or were skipped because of that. A unit that ended only because of a
 * unit inside it is not listed; the inner one is.
 */
export function unfinished(graph: Graph, events: readonly HistoryEvent[]): readonly string[] {
  const found = new Set<string>();
  const completed = new Set<string>();
  for (const event of events) {
    const unit = unitOfEvent(event);
    const node = unit === undefined ? undefined : graph.byPath.get(definitionPath(unit));
    if (!node || unit === undefined) continue;
    if (event.type === 'step.completed') completed.add(unit);
    else if (event.type === 'step.started') completed.delete(unit);
    if (event.type === 'step.completed' || event.type === 'step.started') found.delete(unit);
    // A copy is never optional itself, and an optional fan-out keeps the results of its copies.
    const failed = event.type === 'step.failed' && !node.step.optional;
    const skipped = event.type === 'step.skipped' && event.data.reason !== 'condition';
    if (failed || skipped || event.type === 'step.cancelled') found.add(unit);
  }
  const outer = new Set([...found].flatMap(outerUnits));
  // Copies that lost a selection need no rerun.
  return [...found].filter(unit => !outer.has(unit) && !outerUnits(unit).some(each => completed.has(each)));
}

/** Returns the units that have events in a history. */
export const unitsOf = (events: readonly HistoryEvent[]): ReadonlySet<string> =>
  new Set(events.flatMap(event => unitOfEvent(event) ?? []));

export interface ForkPoint {
  readonly runId: string;
  readonly from: string;
}

/**
 * Returns the first events of a forked run: its start and the events that it keeps. Throws USAGE for an unknown step.
 */
export function forkedEvents(
  graph: Graph,
  history: readonly HistoryEvent[],
  { runId, from }: ForkPoint,
): readonly NewEvent[] {
  if (!graph.byPath.has(definitionPath(from))) {
    const suggestion = nearest(from, graph.byPath.keys());
    throw new RepriseError('USAGE', `the workflow has no step ${from}`, {
      hint: suggestion ? `did you mean ${suggestion}?` : `steps: ${[...graph.byPath.keys()].join(', ')}`,
    });
  }
  const { events } = effectiveHistory(history);
  const started = events.find(event => event.type === 'run.started');
  if (started?.type !== 'run.started')
    throw new RepriseError('HISTORY_INVALID', `run ${runId} has no run.started event`);

  const { changed } = findChanges(graph, events);
  const known = unitsOf(events);
  const again = affectedBy(graph, [from, ...changed, ...openUnits(graph, events, known)], known);
  const data = {
    ...started.data,
    steps: graph.nodes.map(({ path }) => path),
    forkedFrom: { run: runId, step: from },
  };
  return [{ type: 'run.started', data }, ...keptEvents(graph, events, again)];
}

/** Returns the units that do work themselves and have no reusable result. */
function openUnits(
  graph: Graph,
  events: readonly HistoryEvent[],
  known: ReadonlySet<string>,
): readonly string[] {
  const ended = endsOf(events);
  const units = new Set([...graph.nodes.map(({ unit }) => unit), ...known]);
  return [...units].filter(unit => {
    const node = graph.byPath.get(definitionPath(unit));
    if (!node || ended.has(unit)) return false;
    const isWorker = /:\d+$/.test(unit);
    // A definition inside a fan-out is only the template for the units inside its copies.
    const isPattern = !known.has(unit) && insideFanOut(graph, unit);
    return !isPattern && (isWorker ? node.child === undefined : !hasInside(node));
  });
}

const insideFanOut = (graph: Graph, path: string): boolean =>
  outerUnits(path).some(outer => graph.byPath.get(outer)?.fanOut !== undefined);

/** Returns the units whose result can be reused. */
function endsOf(events: readonly HistoryEvent[]): ReadonlySet<string> {
  const ends = new Set<string>();
  for (const event of events) {
    const reusable =
      event.type === 'step.completed' || (event.type === 'step.skipped' && event.data.reason === 'condition');
    const unit = unitOfEvent(event);
    if (unit !== undefined && reusable) ends.add(unit);
  }
  return ends;
}

function keptEvents(graph: Graph, events: readonly HistoryEvent[], again: ReadonlySet<string>): NewEvent[] {
  const left = withoutUnits(events, again);
  return left.events.flatMap(({ seq: _seq, runId: _runId, at: _at, ...event }) => {
    const unit = unitOfEvent(event);
    const isKept =
      unit === undefined ? event.type === 'signal.received' : graph.byPath.has(definitionPath(unit));
    return isKept ? [event as NewEvent] : [];
  });
}
