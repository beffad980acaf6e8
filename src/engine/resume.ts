import { RepriseError } from '../core/errors.ts';
import type { HistoryEvent, NewEvent } from '../core/event.ts';
import { findChanges } from './changes.ts';
import { effectiveHistory, isRunEnd } from './effective-history.ts';
import { unfinished } from './fork.ts';
import { affectedBy, type Graph, type GraphNode } from './graph.ts';
import type { RunState } from './state.ts';

/** What a resume writes first; undefined if the run is completed and nothing is to run again. */
export function resumeEvent(
  graph: Graph,
  history: readonly HistoryEvent[],
  { runId, rerunChanged }: { readonly runId: string; readonly rerunChanged?: boolean | undefined },
): NewEvent | undefined {
  const { events } = effectiveHistory(history);
  const { changed, removed } = findChanges(graph, events);
  const sameDefinition = changed.length === 0 && removed.length === 0;
  if (!sameDefinition && !rerunChanged) throw definitionChanged(runId, changed, removed);

  const last = events.at(-1);
  if (last?.type === 'run.completed' && sameDefinition) return undefined;
  const again = last && isRunEnd(last) ? unfinished(graph, events) : [];
  const invalidated = [...affectedBy([...changed, ...again])].map(({ path }) => path).concat(removed);
  const steps = graph.nodes.map(({ path }) => path);
  return {
    type: 'run.resumed',
    data: {
      ...(invalidated.length > 0 ? { invalidated } : {}),
      ...(sameSteps(history, steps) ? {} : { steps }),
    },
  };
}

function sameSteps(history: readonly HistoryEvent[], steps: readonly string[]): boolean {
  const last = history.findLast(
    event => (event.type === 'run.started' || event.type === 'run.resumed') && event.data.steps !== undefined,
  );
  const before = last?.type === 'run.started' || last?.type === 'run.resumed' ? last.data.steps : undefined;
  return before?.length === steps.length && before.every((path, index) => path === steps[index]);
}

/** Steps that were at work when the last owner died. */
export function interruptedSteps(
  state: RunState,
  { runId, at }: { readonly runId: string; readonly at: string },
): HistoryEvent[] {
  const running = [...state.active].filter(({ status, node }) => status === 'running' && !node.child);
  return running.map(({ node, attempt }, index) => ({
    seq: state.lastSeq + 1 + index,
    runId,
    at,
    type: 'step.interrupted',
    step: node.path,
    attempt,
    data: {},
  }));
}

function definitionChanged(
  runId: string,
  changed: readonly GraphNode[],
  removed: readonly string[],
): RepriseError {
  const lines = [
    ...changed.map(({ path }) => `  ${path}: changed`),
    ...removed.map(path => `  ${path}: removed`),
  ];
  return new RepriseError(
    'DEFINITION_CHANGED',
    `steps of run ${runId} that already ran have changed since:\n${lines.join('\n')}`,
    {
      hint: `run them and what depends on them again: reprise resume ${runId} --rerun-changed`,
    },
  );
}
