import { RepriseError } from '../../core/errors.ts';
import type { HistoryEvent } from '../../core/events.ts';
import { canonicalJson } from '../../core/json.ts';
import { decide } from '../run/planner.ts';
import { type RunResult, resultOf } from '../run/result.ts';
import type { Graph } from '../state/graph.ts';
import { RunState } from '../state/run-state.ts';
import { effectiveHistory, findChanges, isRunEnd } from './effective.ts';

export interface ReplayResult {
  readonly result: RunResult;
  readonly history: readonly HistoryEvent[];
  /** Whether the history has come to an end. */
  readonly ended: boolean;
}

/** Goes through a history, and checks that it fits the graph and that its end follows from its steps. Throws HISTORY_DIVERGED. */
export function replayHistory(graph: Graph, runId: string, history: readonly HistoryEvent[]): ReplayResult {
  const { changed, removed } = findChanges(graph, effectiveHistory(history).events);
  const names = [...changed, ...removed];
  if (names.length > 0) {
    throw new RepriseError(
      'HISTORY_DIVERGED',
      `run ${runId} does not fit the definition: ${names.join(', ')} changed since`,
      { hint: `run what changed again: reprise resume ${runId} --rerun-changed` },
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
      `the history ends with ${recorded.type}, but its steps lead to ${derived?.type ?? 'more work'}`,
      { hint: 'the workflow may have gained steps since: start a new run of it' },
    );
  }
}

/** The state that a history leads to. */
export function foldHistory(graph: Graph, history: readonly HistoryEvent[]): RunState {
  const { events, attempts } = effectiveHistory(history);
  const state = new RunState(graph, attempts);
  for (const event of events) state.apply(event);
  state.lastSeq = history.at(-1)?.seq ?? 0;
  return state;
}
