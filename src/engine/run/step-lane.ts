import { RepriseError } from '../../core/errors.ts';
import { Cancelled } from '../../effects/effect.ts';
import type { Mailbox } from '../../effects/world.ts';
import type { Lease } from '../../store/port.ts';
import type { EngineEffects } from '../effects.ts';
import type { Observer } from '../environment.ts';
import type { Message } from '../messages.ts';
import type { NodeState } from '../state/step-state.ts';
import type { WorkLane, WorkNote } from '../step/contract.ts';
import type { StepFacts } from '../step-facts.ts';
import { FunctionCall } from './function-step.ts';
import { expressionError, type StepEnd } from './messages.ts';

export interface StepLane extends StepFacts {
  readonly effects: EngineEffects;
  readonly mail: Mailbox<Message>;
  readonly observe: Observer;
  readonly runId: string;
  readonly lease: Lease;
  readonly node: NodeState;
}

/** Under which name a function under way is known. */
export const callKey = (runId: string, unit: string): string => `${runId}:${unit}`;

/** Does the work of one attempt of a step, and tells the engine lane how it ended, whatever happens. */
export const runStepLane = (lane: StepLane): Promise<void> => report(lane, work);

/** Has the best worker of a fan-out chosen, and tells the engine lane how that ended. */
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
        : { kind: 'failed', error: expressionError('the step could not be run', thrown) };
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

/** Returns when the events are durable. In a lane that is being cancelled too: what it tidies up is remembered. */
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
