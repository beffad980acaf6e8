import { type HistoryEvent, type NewEvent, RepriseError } from '../../core/index.ts';
import type { SavedWork } from '../../git/workspace/index.ts';
import { isAtWork } from '../run/messages.ts';
import { envelopeOf, type Graph, unitOfEvent } from '../state/graph.ts';
import type { RunState } from '../state/run-state.ts';
import { affectedBy, effectiveHistory, findChanges, isRunEnd } from './effective.ts';
import { unfinished, unitsOf } from './fork.ts';

/**
 * Returns the first event of a resume, or `undefined` if the run is completed and nothing must rerun. Throws
 * DEFINITION_CHANGED.
 */
export function resumeEvent(
  graph: Graph,
  history: readonly HistoryEvent[],
  {
    runId,
    rerunChanged,
    lost = [],
  }: {
    readonly runId: string;
    readonly rerunChanged?: boolean | undefined;
    /** Units whose saved work no longer exists. */
    readonly lost?: readonly string[] | undefined;
  },
): NewEvent | undefined {
  const { events } = effectiveHistory(history);
  const { changed, removed } = findChanges(graph, events);
  const sameDefinition = changed.length === 0 && removed.length === 0;
  if (!sameDefinition && !rerunChanged) throw definitionChanged(runId, changed, removed);

  const last = events.at(-1);
  if (last?.type === 'run.completed' && sameDefinition) return undefined;
  const again = last && isRunEnd(last) ? unfinished(graph, events) : [];
  const roots = [...changed, ...again, ...lost];
  const affected = roots.length > 0 ? affectedBy(graph, roots, unitsOf(events)) : [];
  const invalidated = [...affected, ...removed];
  return {
    type: 'run.resumed',
    data: {
      ...(invalidated.length > 0 ? { invalidated } : {}),
      ...(sameSteps(history, graph) ? {} : { steps: graph.nodes.map(({ path }) => path) }),
    },
  };
}

/** Returns the saved work of completed units that has not landed yet. */
export function unlandedWork(
  history: readonly HistoryEvent[],
): readonly (SavedWork & { readonly unit: string })[] {
  const works = new Map<string, Partial<SavedWork> & { readonly isCompleted?: boolean }>();
  const landed = new Set<string>();
  for (const event of effectiveHistory(history).events) {
    const unit = unitOfEvent(event);
    if (unit === undefined) continue;
    if (event.type === 'workspace.created') {
      const { branch, base } = event.data;
      works.set(unit, { branch, base });
      landed.delete(branch);
    } else if (event.type === 'workspace.saved')
      works.set(unit, { ...works.get(unit), commit: event.data.commit });
    else if (event.type === 'step.completed') works.set(unit, { ...works.get(unit), isCompleted: true });
    else if (event.type === 'landing.ended' && hasLanded.has(event.data.outcome))
      landed.add(event.data.branch);
  }
  return [...works].flatMap(([unit, { branch, base, commit, isCompleted }]) =>
    !isCompleted || branch === undefined || base === undefined || commit === undefined || landed.has(branch)
      ? []
      : { unit, branch, base, commit },
  );
}

const hasLanded: ReadonlySet<string> = new Set(['landed', 'nothing-to-land']);

function sameSteps(history: readonly HistoryEvent[], { nodes }: Graph): boolean {
  let before: readonly string[] | undefined;
  for (const event of history)
    if (event.type === 'run.started' || event.type === 'run.resumed') before = event.data.steps ?? before;
  return before?.length === nodes.length && before.every((path, index) => path === nodes[index]?.path);
}

/** Returns an interruption for each step that was running, or about to run, when the previous owner died. */
export function interruptedSteps(
  state: RunState,
  { runId, at }: { readonly runId: string; readonly at: string },
): HistoryEvent[] {
  const running = [...state.active].filter(isAtWork);
  return running.map(({ node, attempt }, index) => ({
    seq: state.lastSeq + 1 + index,
    runId,
    at,
    type: 'step.interrupted',
    ...envelopeOf(node),
    attempt,
    data: {},
  }));
}

const maxShown = 20;

function definitionChanged(
  runId: string,
  changed: readonly string[],
  removed: readonly string[],
): RepriseError {
  const all = [...changed.map(unit => `  ${unit}: changed`), ...removed.map(unit => `  ${unit}: removed`)];
  const more = all.length - maxShown;
  const lines = more > 0 ? [...all.slice(0, maxShown), `  and ${more} more`] : all;
  return new RepriseError(
    'DEFINITION_CHANGED',
    `steps of run ${runId} that already ran have changed:\n${lines.join('\n')}`,
    {
      hint: `to rerun them and every step that depends on them: reprise resume ${runId} --rerun-changed`,
    },
  );
}
