import type { HistoryEvent } from '../core/events.ts';
import { effectiveHistory } from './history/effective.ts';
import type { Graph } from './state/graph.ts';
import { RunState } from './state/run-state.ts';

/** The state that a history leads to. */
export function foldHistory(graph: Graph, history: readonly HistoryEvent[]): RunState {
  const { events, attempts } = effectiveHistory(history);
  const state = new RunState(graph, attempts);
  for (const event of events) state.apply(event);
  state.lastSeq = history.at(-1)?.seq ?? 0;
  return state;
}
