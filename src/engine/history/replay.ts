import { canonicalJson, type HistoryEvent, RepriseError } from '../../core/index.ts';
import { decide } from '../run/planner.ts';
import { type RunResult, resultOf } from '../run/result.ts';
import type { Graph } from '../state/graph.ts';
import { RunState } from '../state/run-state.ts';
import { effectiveHistory, findChanges, isRunEnd } from './effective.ts';

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
  const names = [...changed, ...removed];
  if (names.length > 0) {
    throw new RepriseError(
      'HISTORY_DIVERGED',
      `run ${runId} does not match the definition: ${names.join(', ')} changed since it ran`,
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
      `the history ends with ${recorded.type}, but its steps lead to ${derived?.type ?? 'unfinished work'}`,
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
