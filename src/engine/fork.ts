import { RepriseError } from '../core/errors.ts';
import type { HistoryEvent, NewEvent } from '../core/event.ts';
import { nearest } from '../core/suggest.ts';
import { findChanges } from './changes.ts';
import { effectiveHistory, withoutSteps } from './effective-history.ts';
import { affectedBy, type Graph, type GraphNode } from './graph.ts';

/**
 * Steps that did not come to an end of their own: they failed, were cancelled, or were skipped because of that.
 * A step that ended so because of what is inside its child workflow is not among them: only that is.
 */
export function unfinished(graph: Graph, events: readonly HistoryEvent[]): readonly GraphNode[] {
  const found = new Set<GraphNode>();
  for (const event of events) {
    const node = event.step === undefined ? undefined : graph.byPath.get(event.step);
    if (!node) continue;
    if (event.type === 'step.completed' || event.type === 'step.started') found.delete(node);
    const failed = event.type === 'step.failed' && !node.step.optional;
    const skipped = event.type === 'step.skipped' && event.data.reason !== 'condition';
    if (failed || skipped || event.type === 'step.cancelled') found.add(node);
  }
  const inner = new Set<GraphNode>();
  for (const node of found)
    for (let outer = node.scope.parent; outer; outer = outer.scope.parent) inner.add(outer);
  return [...found].filter(node => !inner.has(node));
}

export interface ForkPoint {
  readonly runId: string;
  readonly from: string;
}

/** The first events of a run that goes on from another: its start, and what is kept. */
export function forkedEvents(
  graph: Graph,
  history: readonly HistoryEvent[],
  { runId, from }: ForkPoint,
): readonly NewEvent[] {
  const root = graph.byPath.get(from);
  if (!root) {
    const meant = nearest(from, graph.byPath.keys());
    throw new RepriseError('USAGE', `the workflow has no step ${from}`, {
      hint: meant ? `did you mean ${meant}?` : `steps: ${[...graph.byPath.keys()].join(', ')}`,
    });
  }
  const { events } = effectiveHistory(history);
  const started = events.find(event => event.type === 'run.started');
  if (started?.type !== 'run.started') throw new RepriseError('HISTORY_INVALID', `run ${runId} has no start`);

  const { changed } = findChanges(graph, events);
  const ends = endsOf(events);
  const open = graph.nodes.filter(({ path }) => !ends.has(path));
  const again = affectedBy([root, ...changed, ...open.filter(({ child }) => !child)]);
  const data = {
    ...started.data,
    steps: graph.nodes.map(({ path }) => path),
    forkedFrom: { run: runId, step: from },
  };
  return [{ type: 'run.started', data }, ...keptEvents(graph, events, again)];
}

/** Steps whose end can be reused. */
function endsOf(events: readonly HistoryEvent[]): ReadonlySet<string> {
  const ends = new Set<string>();
  for (const event of events) {
    const reusable =
      event.type === 'step.completed' || (event.type === 'step.skipped' && event.data.reason === 'condition');
    if (event.step !== undefined && reusable) ends.add(event.step);
  }
  return ends;
}

function keptEvents(
  graph: Graph,
  events: readonly HistoryEvent[],
  again: ReadonlySet<GraphNode>,
): NewEvent[] {
  const left = withoutSteps(events, new Set(Array.from(again, ({ path }) => path)));
  return left.events.flatMap(({ seq: _seq, runId: _runId, at: _at, ...event }) => {
    const isKept = event.step === undefined ? event.type === 'signal.received' : graph.byPath.has(event.step);
    return isKept ? [event as NewEvent] : [];
  });
}
