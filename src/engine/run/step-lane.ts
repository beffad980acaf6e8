import { RepriseError } from '../../core/index.ts';
import { Cancelled, type Mailbox } from '../../effects/index.ts';
import type { Lease } from '../../store/index.ts';
import type { Scope, SpendingLimit } from '../../workflow/index.ts';
import type { EngineEffects } from '../effects.ts';
import type { Observer } from '../environment.ts';
import { siblingUnit } from '../state/graph.ts';
import type { RunState } from '../state/run-state.ts';
import { keptUnit, scopeOfStep } from '../state/scope.ts';
import type { NodeState } from '../state/step-state.ts';
import { nothingSpent, type WorkState } from '../state/work-state.ts';
import type { FinishedWork, FinishedWorker, KnownWork, WorkLane, WorkNote } from '../step/contract.ts';
import { FunctionCall } from './function-step.ts';
import { expressionError, type LoopMessage, type StepEnd } from './messages.ts';
import { leftOf } from './result.ts';

interface StepLane extends StepFacts {
  readonly effects: EngineEffects;
  readonly mail: Mailbox<LoopMessage>;
  readonly observe: Observer;
  readonly runId: string;
  readonly lease: Lease;
  readonly node: NodeState;
}

/** Returns the key of a running function in `EngineEffects.calls`. */
export const callKey = (runId: string, unit: string): string => `${runId}:${unit}`;

/** Performs one attempt of a step and always reports its end to the engine lane. */
export const runStepLane = (lane: StepLane): Promise<void> => report(lane, work);

/** Selects the best copy of a fan-out and always reports the end to the engine lane. */
export const runSelectionLane = (lane: StepLane): Promise<void> => report(lane, choose);

type LaneBody = (lane: StepLane, conclude: (note: WorkNote) => void) => Promise<StepEnd>;

async function report(lane: StepLane, body: LaneBody): Promise<void> {
  const notes: WorkNote[] = [];
  let end: StepEnd;
  try {
    end = await body(lane, note => notes.push(note));
  } catch (thrown) {
    end =
      thrown instanceof Cancelled
        ? { kind: 'cancelled', reason: 'cancelled' }
        : { kind: 'failed', error: expressionError('the step could not run', thrown) };
  }
  await lane.mail.send({ kind: 'ended', node: lane.node, end, ...(notes.length > 0 ? { notes } : {}) });
}

function work(lane: StepLane, conclude: WorkLane['conclude']): Promise<StepEnd> {
  const { step } = lane.node.node;
  switch (step.body.kind) {
    case 'function':
      return runFunction(lane);
    case 'run':
    case 'agent':
    case 'land':
    case 'built-in':
      return lane.effects.work.doWork(workLane(lane, conclude));
    case 'uses':
    case 'approve':
      throw new RepriseError('INTERNAL', `a ${step.body.kind} step has no work of its own`);
  }
}

function choose(lane: StepLane, conclude: WorkLane['conclude']): Promise<StepEnd> {
  const rule = lane.node.node.fanOut?.select;
  if (!rule) throw new RepriseError('INTERNAL', `${lane.node.node.unit} has nothing to select`);
  return lane.effects.work.select({ ...workLane(lane, conclude), rule, candidates: lane.candidates });
}

function workLane(lane: StepLane, conclude: WorkLane['conclude']): WorkLane {
  const { effects, runId, lease, node, scope, known, base, left, workflow } = lane;
  const { path, worker, step } = node.node;
  return {
    effects: effects.work.effects,
    runId,
    workflow,
    lease,
    unit: { step: path, attempt: node.attempt, ...(worker === undefined ? {} : { worker }) },
    model: step,
    scope,
    known,
    base,
    left,
    workOf: lane.workOf,
    record: (...notes) => record(lane, notes),
    conclude,
  };
}

/**
 * Returns when the events are durable. It also works in a lane that is being cancelled, so that cleanup is recorded.
 */
async function record({ effects, mail, node, runId }: StepLane, notes: readonly WorkNote[]): Promise<void> {
  const receipt = await effects.newReceipt();
  await mail.send({ kind: 'noted', node, notes, receipt });
  await effects.committed({ runId, receipt });
}

async function runFunction({ effects, mail, observe, runId, node, scope }: StepLane): Promise<StepEnd> {
  const { path, worker, unit, step } = node.node;
  if (step.body.kind !== 'function') throw new TypeError(`${unit} is not a function step`);
  const key = callKey(runId, unit);
  effects.calls.set(
    key,
    new FunctionCall({
      body: step.body,
      scope,
      runId,
      step: path,
      worker,
      attempt: node.attempt,
      known: node.waits && new Map(node.waits),
      log: (message, fields) => observe({ kind: 'log', step: path, worker, message, fields }),
      endOfTurn: effects.endOfTurn,
    }),
  );
  try {
    for (;;) {
      const turn = await effects.functionNext(key);
      if (turn.kind === 'ended') return turn.end;
      await mail.send({ kind: 'asked', node, questions: turn.questions });
    }
  } finally {
    effects.calls.delete(key);
  }
}

/** Facts about the run that a lane receives when it starts. It sees nothing else of the run's state. */
interface StepFacts extends Pick<WorkLane, 'scope' | 'known' | 'base' | 'left' | 'workOf' | 'workflow'> {
  /** Copies of a fan-out that succeeded. */
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

function knownWork({ work, error, approval }: NodeState): KnownWork {
  const { workspace, session, answer, answers = 0, sessions = 0, reworks = 0 } = work ?? {};
  const { sessionId } = session ?? {};
  return {
    workspace,
    session: session && sessionId !== undefined ? { ...session, sessionId } : undefined,
    answer,
    answers,
    sessions,
    reworks,
    landings: new Map(work?.landings),
    delivered: work?.delivered,
    transitions: work?.transitions ?? [],
    lastError: error,
    ...(approval ? { approval } : {}),
  };
}

/** Finds the work of another step. For a copy, that is a sibling of its fan-out. */
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
