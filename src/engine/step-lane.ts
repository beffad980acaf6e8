import { RepriseError } from '../core/errors.ts';
import { toJson } from '../core/json.ts';
import type { Lease } from '../store/port.ts';
import type { Scope, StepModel } from '../workflow/model.ts';
import type { Mailbox } from '../world/mailbox.ts';
import { Cancelled } from '../world/outcome.ts';
import type { EngineEffects } from './effects.ts';
import type { Observer } from './environment.ts';
import { FunctionCall } from './function-call.ts';
import type { Message } from './messages.ts';
import type { NodeState } from './node-state.ts';
import { expressionError, type StepEnd, thrownError } from './step-end.ts';

export interface StepLane {
  readonly effects: EngineEffects;
  readonly mail: Mailbox<Message>;
  readonly observe: Observer;
  readonly runId: string;
  readonly lease: Lease;
  readonly node: NodeState;
  readonly scope: Scope;
}

/** Under which name a function under way is known. */
export const callKey = (runId: string, path: string): string => `${runId}:${path}`;

/** Does the work of one attempt of a step, and tells the engine lane how it ended, whatever happens. */
export async function runStepLane(lane: StepLane): Promise<void> {
  let end: StepEnd;
  try {
    end = await work(lane);
  } catch (thrown) {
    end =
      thrown instanceof Cancelled
        ? { kind: 'cancelled', reason: 'cancelled' }
        : { kind: 'failed', error: expressionError('the step could not be run', thrown) };
  }
  await lane.mail.send({ kind: 'ended', node: lane.node, end });
}

function work(lane: StepLane): Promise<StepEnd> {
  const { step } = lane.node.node;
  switch (step.body.kind) {
    case 'function':
      return runFunction(lane);
    case 'run':
      return runCommand(lane, step);
    case 'uses':
    case 'approve':
      throw new RepriseError('INTERNAL', `a ${step.body.kind} step has no work of its own`);
  }
}

async function runFunction({ effects, mail, observe, runId, node, scope }: StepLane): Promise<StepEnd> {
  const { path, step } = node.node;
  if (step.body.kind !== 'function') throw new TypeError(`${path} is not a function step`);
  const key = callKey(runId, path);
  effects.calls.set(
    key,
    new FunctionCall({
      body: step.body,
      scope,
      runId,
      step: path,
      attempt: node.attempt,
      known: node.waits && new Map(node.waits),
      log: (message, fields) => observe({ kind: 'log', step: path, message, fields }),
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

async function runCommand(
  { effects, runId, lease, node, scope }: StepLane,
  { body }: StepModel,
): Promise<StepEnd> {
  const { path } = node.node;
  if (body.kind !== 'run') throw new TypeError(`${path} is not a shell step`);
  const end = await effects.shell({
    runId,
    step: path,
    attempt: node.attempt,
    lease,
    command: body.command(scope),
  });
  if (end.kind === 'cancelled') return { kind: 'cancelled', reason: 'cancelled' };
  if (end.kind === 'failed') return { kind: 'failed', error: end.error };
  try {
    return {
      kind: 'completed',
      output: body.parseOutput ? toJson(body.parseOutput(end.output)) : end.output,
    };
  } catch (thrown) {
    return { kind: 'failed', error: thrownError(thrown) };
  }
}
