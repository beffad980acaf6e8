import { type HistoryEvent, type NewEvent, nearest, RepriseError } from '../../core/index.ts';
import type { SavedWork } from '../../git/workspace/index.ts';
import { isAtWork } from '../run/messages.ts';
import {
  definitionPath,
  envelopeOf,
  type Graph,
  hasInside,
  outerUnits,
  unitOfEvent,
} from '../state/graph.ts';
import type { RunState } from '../state/run-state.ts';
import { affectedBy, effectiveHistory, findChanges, isRunEnd, withoutUnits } from './effective.ts';

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

/**
 * Returns the units that failed, were cancelled, or were skipped because of that. A unit that ended only because of a
 * unit inside it is not listed; the inner one is.
 */
function unfinished(graph: Graph, events: readonly HistoryEvent[]): readonly string[] {
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
const unitsOf = (events: readonly HistoryEvent[]): ReadonlySet<string> =>
  new Set(events.flatMap(event => unitOfEvent(event) ?? []));

interface ForkPoint {
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
