import {
  type EventOf,
  type HistoryEvent,
  type Json,
  type NewEvent,
  RepriseError,
  toJson,
} from '../../core/index.ts';
import { maxCopies, type SpendingLimit, type WorkflowModel } from '../../workflow/index.ts';
import { buildGraph, envelopeOf, type GraphNode, type GraphScope } from '../state/graph.ts';
import { RunState } from '../state/run-state.ts';
import { outputOfScope, scopeOfStep } from '../state/scope.ts';
import {
  type ApprovalAnswer,
  holderOf,
  type NodeState,
  needsSlot,
  type ScopeState,
} from '../state/step-state.ts';
import { budgetSuspension, endEvent, expressionError, rejection, type SimpleEnd } from './messages.ts';
import { fanOutOutput, overspent } from './result.ts';

/**
 * A decision of the planner. Its events are made durable before it is carried out.
 * `start` and `resume` run a step, `answer` passes an answer to a waiting call of a running step, `select` chooses the
 * best copy of a fan-out, `cancel` stops an active step, `end` ends the run, and `note` only records events.
 */
export interface PlannerDecision {
  readonly kind: 'start' | 'resume' | 'answer' | 'select' | 'cancel' | 'note' | 'end';
  readonly node?: NodeState;
  readonly events: readonly NewEvent[];
}

export interface Limits {
  /** Maximum number of steps that run in parallel. */
  readonly places: number;
  /** Spending limit for the agents of the run. */
  readonly spending?: SpendingLimit | undefined;
}

/** Returns the next decision, or `undefined` until a new event arrives. Pure, in amortized constant time. */
export function decide(state: RunState, limits: Limits): PlannerDecision | undefined {
  if (state.phase !== 'running') return undefined;
  if (state.suspended) return cancelNext(state) ?? closeNext(state);
  return (
    stopOverBudget(state, limits) ??
    cancelNext(state) ??
    closeNext(state) ??
    answerNext(state) ??
    considerNext(state) ??
    startQueued(state, limits) ??
    cancelStranded(state)
  );
}

/** Returns the units that can start now, given a definition and a history. */
export function findReadySteps(
  workflow: WorkflowModel,
  history: readonly HistoryEvent[],
  limits: Limits = { places: Number.POSITIVE_INFINITY },
): readonly string[] {
  const state = new RunState(buildGraph(workflow));
  for (const event of history) state.apply(event);
  const [last] = history.slice(-1);
  const ready: string[] = [];
  for (let decision = decide(state, limits); decision; decision = decide(state, limits)) {
    if (decision.kind === 'start' && decision.node) ready.push(decision.node.node.unit);
    for (const event of decision.events) {
      state.apply({
        seq: state.lastSeq + 1,
        runId: last?.runId ?? '',
        at: last?.at ?? '',
        ...event,
      } as HistoryEvent);
    }
  }
  return ready;
}

/** Suspends the run once its agents have spent more than allowed. */
function stopOverBudget(state: RunState, { spending }: Limits): PlannerDecision | undefined {
  const message = spending && !state.cancel ? overspent(state.spent, spending) : undefined;
  if (message === undefined) return undefined;
  const hint = 'raise `runtime.budget`, then resume the run';
  const error = { code: 'BUDGET_EXCEEDED', message: `the run ${message}`, hint };
  return { kind: 'note', events: [budgetSuspension(error, spending)] };
}

function cancelNext(state: RunState): PlannerDecision | undefined {
  for (let node = state.toCancel.shift(); node; node = state.toCancel.shift()) {
    if (!node.active && !node.interrupted) continue;
    node.cancelling = true;
    return { kind: 'cancel', node, events: [] };
  }
  return undefined;
}

function cancelStranded(state: RunState): PlannerDecision | undefined {
  state.cancelStranded();
  return cancelNext(state) ?? considerNext(state);
}

function answerNext(state: RunState): PlannerDecision | undefined {
  for (let node = state.answered.shift(); node; node = state.answered.shift()) {
    if (node.status === 'running') return { kind: 'answer', node, events: [] };
  }
  return undefined;
}

/** Ends a workflow or a fan-out once all of its steps have ended. */
function closeNext(state: RunState): PlannerDecision | undefined {
  for (let scope = state.toClose.peek(); scope; state.toClose.shift(), scope = state.toClose.peek()) {
    if (scope.open > 0) continue;
    const { parent } = scope.scope;
    if (!parent) return { kind: 'end', events: [runEnd(state, scope)] };
    const node = state.of(parent);
    // Ignore the copies of an earlier attempt.
    if (node.status !== 'running' || state.insideOf(node) !== scope) continue;
    if (scope.scope.kind === 'workers' && wantsSelection(state, node, scope)) {
      if (state.suspended) return undefined;
      state.toClose.shift();
      return { kind: 'select', node, events: [] };
    }
    return { kind: 'note', events: [endEvent(state, node, insideEnd(state, node, scope))] };
  }
  return undefined;
}

/** Whether to select a copy: it happens once, and only if a copy has succeeded. */
function wantsSelection(state: RunState, node: NodeState, { scope, stop }: ScopeState): boolean {
  if (!node.node.fanOut?.select || node.selection || stop === 'cancel') return false;
  return scope.nodes.some(worker => state.of(worker).status === 'completed');
}

/** A failure inside outweighs a cancellation, unless the containing step timed out. */
function insideEnd(state: RunState, node: NodeState, scope: ScopeState): SimpleEnd {
  const output = scope.scope.kind === 'workers' ? fanOutOutput(state, node, scope) : undefined;
  if (scope.stop === 'cancel' && (node.timedOut || !scope.cause)) {
    return { kind: 'cancelled', reason: cancelReason(state, scope), output };
  }
  if (scope.cause && !node.selection) return { kind: 'failed', error: scope.cause.error, output };
  if (output !== undefined) return { kind: 'completed', output };
  try {
    return { kind: 'completed', output: outputOfScope(state, scope) };
  } catch (thrown) {
    return {
      kind: 'failed',
      error: expressionError('could not evaluate the output of the child workflow', thrown),
    };
  }
}

function runEnd(state: RunState, scope: ScopeState): NewEvent {
  if (state.cancel?.error) return { type: 'run.failed', data: { error: state.cancel.error } };
  if (state.cancel) return { type: 'run.cancelled', data: { reason: state.cancel.reason } };
  if (scope.cause) return { type: 'run.failed', data: { error: scope.cause.error, step: scope.cause.path } };
  try {
    return { type: 'run.completed', data: { output: outputOfScope(state, scope) } };
  } catch (thrown) {
    const error = expressionError('could not evaluate the output of the workflow', thrown);
    return { type: 'run.failed', data: { error } };
  }
}

/** Looks at steps whose dependencies have ended: skips them, starts those that need no slot, and queues the rest. */
function considerNext(state: RunState): PlannerDecision | undefined {
  for (let ticket = state.ready.peek(); ticket; state.ready.shift(), ticket = state.ready.peek()) {
    const node = holderOf(ticket);
    if (node?.status !== 'pending' || node.unmet > 0) continue;
    const verdict = verdictOn(state, node);
    if (verdict) return { kind: 'note', events: verdict };
    if (!needsSlot(node.node)) return startWithoutSlot(state, node);
    state.queued.push(ticket);
  }
  return undefined;
}

function startQueued(state: RunState, { places }: Limits): PlannerDecision | undefined {
  for (let ticket = state.woken.peek(); ticket; state.woken.shift(), ticket = state.woken.peek()) {
    const node = holderOf(ticket);
    if (node?.status !== 'woken') continue;
    if (node.approval?.given && node.node.step.body.kind === 'approve')
      return { kind: 'note', events: [endEvent(state, node, approvalEnd(node.approval.given))] };
    const resumed = {
      type: 'step.resumed',
      ...envelopeOf(node.node),
      attempt: node.attempt,
      data: {},
    } as const;
    // The agent that judges the copies was paused by a rate limit.
    if (node.workers) return { kind: 'select', node, events: [resumed] };
    if (!needsSlot(node.node)) return startWithoutSlot(state, node);
    if (state.slotsTaken >= places) return undefined;
    if (node.timers?.has('retry')) return { kind: 'start', node, events: [started(node)] };
    return { kind: 'resume', node, events: [resumed] };
  }
  for (let ticket = state.queued.peek(); ticket; state.queued.shift(), ticket = state.queued.peek()) {
    const node = holderOf(ticket);
    if (node?.status !== 'pending' || node.unmet > 0) continue;
    if (state.slotsTaken >= places) return undefined;
    return { kind: 'start', node, events: [started(node)] };
  }
  return undefined;
}

/** Returns the events of a step that must not run: it is skipped, or its condition could not be evaluated. */
function verdictOn(state: RunState, nodeState: NodeState): readonly NewEvent[] | undefined {
  const { node, interrupted } = nodeState;
  if (interrupted) return undefined; // this was decided at its first start
  const scope = state.scopeOf(node.scope);
  const skipped = (data: Omit<EventOf<'step.skipped'>['data'], 'fingerprint'>): readonly NewEvent[] => [
    { type: 'step.skipped', ...envelopeOf(node), data: { fingerprint: node.step.fingerprint, ...data } },
  ];
  if (scope.stop === 'cancel') return skipped(whyStopped(state, scope));
  const missing = node.needs.find(need => !node.tolerates.has(need) && state.of(need).status !== 'completed');
  if (missing) return skipped({ reason: 'dependency', because: missing.unit });
  if (scope.stop && node.tolerates.size === 0)
    return skipped({ reason: 'failure', because: scope.cause?.path });
  if (!node.step.condition) return undefined;
  try {
    return node.step.condition(scopeOfStep(state, node)) ? undefined : skipped({ reason: 'condition' });
  } catch (thrown) {
    const error = expressionError('could not evaluate the condition', thrown);
    return [started(nodeState), failedAtOnce(nodeState, error)];
  }
}

/** Starts an approval, a child workflow or a fan-out, none of which does work itself. */
function startWithoutSlot(state: RunState, nodeState: NodeState): PlannerDecision {
  const { node } = nodeState;
  const { body } = node.step;
  const place = envelopeOf(node);
  try {
    if (node.fanOut) {
      const items = node.fanOut.items(scopeOfStep(state, node));
      checkCopies(node, items.length);
      const isMatrix = node.fanOut.kind === 'matrix';
      const data = {
        kind: node.fanOut.kind,
        total: items.length,
        ...(isMatrix ? { items: [...items] } : {}),
      };
      const attempt = nextAttempt(nodeState);
      return {
        kind: 'note',
        node: nodeState,
        events: [started(nodeState), { type: 'fanout.expanded', ...place, attempt, data }],
      };
    }
    if (body.kind === 'uses') {
      const input = body.workflow.input.parse(body.input(scopeOfStep(state, node)));
      return { kind: 'note', node: nodeState, events: [started(nodeState, input)] };
    }
    if (body.kind === 'approve') {
      const { message, choices } = body.request(scopeOfStep(state, node));
      const attempt = nextAttempt(nodeState);
      return {
        kind: 'note',
        node: nodeState,
        events: [
          started(nodeState),
          { type: 'approval.requested', ...place, attempt, data: { message, choices: [...choices] } },
          { type: 'step.suspended', ...place, attempt, data: { on: 'approval', wait: 0 } },
        ],
      };
    }
  } catch (thrown) {
    const what = node.fanOut
      ? 'could not evaluate the matrix items'
      : body.kind === 'uses'
        ? 'could not evaluate the input of the child workflow'
        : 'could not evaluate the approval message';
    return {
      kind: 'note',
      events: [started(nodeState), failedAtOnce(nodeState, expressionError(what, thrown))],
    };
  }
  throw new RepriseError('INTERNAL', `${node.unit} needs a slot`);
}

/** Throws EXPRESSION_FAILED if a step, with all copies of the steps that contain it, has too many copies. */
function checkCopies(node: GraphNode, copies: number): void {
  const around = copiesAround(node.scope);
  if (copies * around <= maxCopies) return;
  const nested = around > 1 ? `, in each of ${around} copies of the workflow` : '';
  throw new RepriseError(
    'EXPRESSION_FAILED',
    `${node.unit} has ${copies} copies${nested}; at most ${maxCopies} are allowed`,
    { hint: 'split the step, or reduce `concurrency` or the matrix' },
  );
}

/** Returns the number of copies of a scope: nested fan-outs multiply. */
function copiesAround({ kind, nodes, parent }: GraphScope): number {
  const own = kind === 'workers' ? nodes.length : 1;
  return parent ? own * copiesAround(parent.scope) : own;
}

/** A retry and a rerun count as new attempts; a restart after an interruption does not. */
const nextAttempt = ({ interrupted, attempt }: NodeState): number => (interrupted ? attempt : attempt + 1);

const started = (nodeState: NodeState, input?: Json): NewEvent => ({
  type: 'step.started',
  ...envelopeOf(nodeState.node),
  attempt: nextAttempt(nodeState),
  data: { fingerprint: nodeState.node.step.fingerprint, ...(input === undefined ? {} : { input }) },
});

const failedAtOnce = (nodeState: NodeState, error: EventOf<'step.failed'>['data']['error']): NewEvent => ({
  type: 'step.failed',
  ...envelopeOf(nodeState.node),
  attempt: nextAttempt(nodeState),
  data: { error },
});

function approvalEnd(answer: ApprovalAnswer): SimpleEnd {
  if (answer.choice !== 'reject') return { kind: 'completed', output: toJson(answer) };
  return { kind: 'failed', error: rejection(answer) };
}

/** Returns the reason why an active step must end. */
export function cancelReason(state: RunState, scope: ScopeState): string {
  const stopper = state.cancel ? undefined : stopperOf(state, scope);
  if (!stopper) return state.cancel?.reason ?? 'cancelled';
  return `${stopper.path} ${stopper.did}`;
}

function whyStopped(
  state: RunState,
  scope: ScopeState,
): Omit<EventOf<'step.skipped'>['data'], 'fingerprint'> {
  const stopper = state.cancel ? undefined : stopperOf(state, scope);
  return stopper ? { reason: 'failure', because: stopper.path } : { reason: 'cancelled' };
}

/** Returns the step that stopped a scope: one inside it that failed, one further out, or the step that contains it. */
function stopperOf(
  state: RunState,
  scope: ScopeState,
): { readonly path: string; readonly did: string } | undefined {
  for (let at: ScopeState | undefined = scope; at; ) {
    if (at.cause) return { path: at.cause.path, did: 'failed' };
    const { parent }: { parent: GraphNode | undefined } = at.scope;
    if (parent && state.of(parent).timedOut) return { path: parent.unit, did: 'timed out' };
    at = parent && state.scopeOf(parent.scope);
  }
  return undefined;
}
