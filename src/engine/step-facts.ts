import type { Scope, SpendingLimit } from '../workflow/model.ts';
import { leftOf } from './budget.ts';
import type { RunState } from './state/run-state.ts';
import { keptUnit, scopeOfStep } from './state/scope.ts';
import type { NodeState } from './state/step-state.ts';
import { nothingSpent, type WorkState } from './state/work-state.ts';
import type { FinishedWork, FinishedWorker, KnownWork, WorkLane } from './step/contract.ts';
import { siblingUnit } from './unit.ts';

/** What a lane is told of the state of the run when it begins; it sees nothing else of it. */
export interface StepFacts
  extends Pick<WorkLane, 'scope' | 'known' | 'base' | 'left' | 'workOf' | 'workflow'> {
  /** Of a fan-out: its workers that succeeded. */
  readonly candidates: readonly FinishedWorker[];
}

export function factsOf(state: RunState, node: NodeState, spending: SpendingLimit | undefined): StepFacts {
  return {
    workflow: state.graph.root.workflow.name,
    scope: scopeOf(state, node),
    known: knownWork(node),
    base: state.base,
    left: leftOf([
      { limit: spending ?? {}, spent: state.spent },
      {
        limit: node.node.step.budget ?? {},
        spent: state.spentBySteps.get(node.node.path) ?? nothingSpent,
      },
    ]),
    workOf: id => finishedWork(state, node, id),
    candidates: finishedWorkers(state, node) ?? [],
  };
}

const scopeOf = (state: RunState, { node }: NodeState): Scope => scopeOfStep(state, node);

function knownWork({ work, error }: NodeState): KnownWork {
  const { workspace, session, sessions = 0, reworks = 0 } = work ?? {};
  const { sessionId } = session ?? {};
  return {
    workspace,
    session: session && sessionId !== undefined ? { ...session, sessionId } : undefined,
    sessions,
    reworks,
    landings: new Map(work?.landings),
    transitions: work?.transitions ?? [],
    lastError: error,
  };
}

/** A worker looks for other steps where its fan-out stands. */
function finishedWork(state: RunState, { node }: NodeState, id: string): FinishedWork {
  const other = state.at(siblingUnit(node.path, id));
  if (!other) return {};
  const { workspace, lastSession } = keptUnit(state, other).work ?? {};
  return {
    branch: workspace?.branch,
    base: workspace?.base,
    workspace: workspace?.path,
    session: lastSession,
    commit: workspace && (workspace.commit ?? workspace.base),
    workers: other.selection ? undefined : finishedWorkers(state, other),
  };
}

function finishedWorkers(state: RunState, { workers }: NodeState): readonly FinishedWorker[] | undefined {
  return workers?.scope.nodes.flatMap((node, worker) => {
    const { status, output = null, work } = state.of(node);
    return status === 'completed' ? [{ worker, output, ...placeOfWork(work) }] : [];
  });
}

function placeOfWork(work: WorkState | undefined): Omit<FinishedWorker, 'worker' | 'output'> {
  const workspace = work?.workspace;
  if (!workspace) return {};
  const { path, branch, base, commit } = workspace;
  return { workspace: path, branch, base, commit: commit ?? base };
}
