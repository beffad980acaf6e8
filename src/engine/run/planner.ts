import { RepriseError } from '../../core/errors.ts';
import type { EventOf, HistoryEvent, NewEvent } from '../../core/events.ts';
import { type Json, toJson } from '../../core/json.ts';
import type { SpendingLimit, WorkflowModel } from '../../workflow/model.ts';
import { buildGraph, type GraphNode, placeOf } from '../state/graph.ts';
import { RunState } from '../state/run-state.ts';
import { outputOfScope, scopeOfStep } from '../state/scope.ts';
import { holderOf, type NodeState, type ScopeState, takesPlace } from '../state/step-state.ts';
import { endEvent, expressionError, type StepEnd } from './messages.ts';
import { fanOutOutput, overspent } from './result.ts';

/**
 * What to do next. Its events are made durable first; then it is carried out.
 * `start` and `resume` put a step to work, `answer` hands a running step what one of its waits was for, `select` has the
 * best worker of a fan-out chosen, `cancel` ends one that is under way, and `note` asks for nothing beyond its events.
 */
export interface Decision {
  readonly kind: 'start' | 'resume' | 'answer' | 'select' | 'cancel' | 'note' | 'end';
  readonly node?: NodeState;
  readonly events: readonly NewEvent[];
}

export interface Limits {
  /** How many steps may be at work at once. */
  readonly places: number;
  /** What the agents of the run may use up. */
  readonly spending?: SpendingLimit | undefined;
}

/** The next decision, or none until something happens. A pure function of the state, in constant time over a run. */
export function decide(state: RunState, limits: Limits): Decision | undefined {
  if (state.phase !== 'running') return undefined;
  return (
    stopOverBudget(state, limits) ??
    cancelNext(state) ??
    closeNext(state) ??
    answerNext(state) ??
    considerNext(state) ??
    placeNext(state, limits)
  );
}

/** The planner as one function: which steps may be put to work now, given a definition and a history. */
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

/** Once more has been used up than the run may, it ends. */
function stopOverBudget(state: RunState, { spending }: Limits): Decision | undefined {
  const message = spending && !state.cancel ? overspent(state.spent, spending) : undefined;
  if (message === undefined) return undefined;
  const hint = 'raise runtime.budget, then resume the run';
  const error = { code: 'BUDGET_EXCEEDED', message: `the run ${message}`, hint };
  return { kind: 'note', events: [{ type: 'cancel.requested', data: { reason: 'budget', error } }] };
}

function cancelNext(state: RunState): Decision | undefined {
  for (let node = state.toCancel.shift(); node; node = state.toCancel.shift()) {
    if (node.active || node.interrupted) return { kind: 'cancel', node, events: [] };
  }
  return undefined;
}

function answerNext(state: RunState): Decision | undefined {
  for (let node = state.answered.shift(); node; node = state.answered.shift()) {
    if (node.status === 'running') return { kind: 'answer', node, events: [] };
  }
  return undefined;
}

/** A workflow of which every step has ended ends itself. */
function closeNext(state: RunState): Decision | undefined {
  for (let scope = state.toClose.peek(); scope; state.toClose.shift(), scope = state.toClose.peek()) {
    if (scope.open > 0) continue;
    const { parent } = scope.scope;
    if (!parent) return { kind: 'end', events: [runEnd(state, scope)] };
    const node = state.of(parent);
    // Workers of an earlier life of the step have nothing to say any more.
    if (node.status !== 'running' || state.insideOf(node) !== scope) continue;
    if (scope.scope.kind === 'workers' && wantsSelection(state, node, scope)) {
      state.toClose.shift();
      return { kind: 'select', node, events: [] };
    }
    return { kind: 'note', events: [endEvent(state, node, insideEnd(state, node, scope))] };
  }
  return undefined;
}

/** The best worker is chosen once, from those that succeeded. */
function wantsSelection(state: RunState, node: NodeState, { scope, stop }: ScopeState): boolean {
  if (!node.node.fanOut?.select || node.selection || stop === 'cancel') return false;
  return scope.nodes.some(worker => state.of(worker).status === 'completed');
}

/** A failure of its own outweighs that it was told to stop, unless the time for all of it ran out. */
function insideEnd(state: RunState, node: NodeState, scope: ScopeState): StepEnd {
  const output = scope.scope.kind === 'workers' ? fanOutOutput(state, node, scope) : undefined;
  if (scope.stop === 'cancel' && (node.timedOut || !scope.cause)) {
    return { kind: 'cancelled', reason: cancelReason(state, scope), output };
  }
  if (scope.cause && !node.selection) return { kind: 'failed', error: scope.cause.error, output };
  if (output !== undefined) return { kind: 'completed', output };
  try {
    return { kind: 'completed', output: outputOfScope(state, scope) };
  } catch (thrown) {
    return { kind: 'failed', error: expressionError('its output', thrown) };
  }
}

function runEnd(state: RunState, scope: ScopeState): NewEvent {
  if (state.cancel?.error) return { type: 'run.failed', data: { error: state.cancel.error } };
  if (state.cancel) return { type: 'run.cancelled', data: { reason: state.cancel.reason } };
  if (scope.cause) return { type: 'run.failed', data: { error: scope.cause.error, step: scope.cause.path } };
  try {
    return { type: 'run.completed', data: { output: outputOfScope(state, scope) } };
  } catch (thrown) {
    return { type: 'run.failed', data: { error: expressionError('the output of the workflow', thrown) } };
  }
}

/** Looks at steps whose dependencies have all ended: skips them, starts what needs no place, queues the rest. */
function considerNext(state: RunState): Decision | undefined {
  for (let ticket = state.ready.peek(); ticket; state.ready.shift(), ticket = state.ready.peek()) {
    const node = holderOf(ticket);
    if (node?.status !== 'pending' || node.unmet > 0) continue;
    const verdict = verdictOn(state, node);
    if (verdict) return { kind: 'note', events: verdict };
    if (!takesPlace(node.node)) return startWithoutPlace(state, node);
    state.queued.push(ticket);
  }
  return undefined;
}

function placeNext(state: RunState, { places }: Limits): Decision | undefined {
  for (let ticket = state.woken.peek(); ticket; state.woken.shift(), ticket = state.woken.peek()) {
    const node = holderOf(ticket);
    if (node?.status !== 'woken') continue;
    if (node.approval?.given)
      return { kind: 'note', events: [endEvent(state, node, approvalEnd(node.approval.given))] };
    const goesOn = { type: 'step.resumed', ...placeOf(node.node), attempt: node.attempt, data: {} } as const;
    // Its judge met a limit.
    if (node.workers) return { kind: 'select', node, events: [goesOn] };
    if (!takesPlace(node.node)) return startWithoutPlace(state, node);
    if (state.placesTaken >= places) return undefined;
    if (node.timers?.has('retry')) return { kind: 'start', node, events: [started(node)] };
    return { kind: 'resume', node, events: [goesOn] };
  }
  for (let ticket = state.queued.peek(); ticket; state.queued.shift(), ticket = state.queued.peek()) {
    const node = holderOf(ticket);
    if (node?.status !== 'pending' || node.unmet > 0) continue;
    if (state.placesTaken >= places) return undefined;
    return { kind: 'start', node, events: [started(node)] };
  }
  return undefined;
}

/** The events of a step that does not get to work: it is skipped, or its condition could not be evaluated. */
function verdictOn(state: RunState, nodeState: NodeState): readonly NewEvent[] | undefined {
  const { node, interrupted } = nodeState;
  if (interrupted) return undefined; // it was decided on when it started first
  const scope = state.scopeOf(node.scope);
  const skipped = (data: Omit<EventOf<'step.skipped'>['data'], 'fingerprint'>): readonly NewEvent[] => [
    { type: 'step.skipped', ...placeOf(node), data: { fingerprint: node.step.fingerprint, ...data } },
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
    return [started(nodeState), failedAtOnce(nodeState, expressionError('its condition', thrown))];
  }
}

/** Gates, child workflows and fan-outs do no work of their own. */
function startWithoutPlace(state: RunState, nodeState: NodeState): Decision {
  const { node } = nodeState;
  const { body } = node.step;
  const place = placeOf(node);
  try {
    if (node.fanOut) {
      const items = node.fanOut.items(scopeOfStep(state, node));
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
      ? 'the items of its matrix'
      : body.kind === 'uses'
        ? 'the input of the child workflow'
        : 'its message';
    return {
      kind: 'note',
      events: [started(nodeState), failedAtOnce(nodeState, expressionError(what, thrown))],
    };
  }
  throw new RepriseError('INTERNAL', `${node.unit} takes a place`);
}

/** An interruption does not use up an attempt; a retry and a new life after an end do. */
const nextAttempt = ({ interrupted, attempt }: NodeState): number => (interrupted ? attempt : attempt + 1);

const started = (nodeState: NodeState, input?: Json): NewEvent => ({
  type: 'step.started',
  ...placeOf(nodeState.node),
  attempt: nextAttempt(nodeState),
  data: { fingerprint: nodeState.node.step.fingerprint, ...(input === undefined ? {} : { input }) },
});

const failedAtOnce = (nodeState: NodeState, error: EventOf<'step.failed'>['data']['error']): NewEvent => ({
  type: 'step.failed',
  ...placeOf(nodeState.node),
  attempt: nextAttempt(nodeState),
  data: { error },
});

function approvalEnd(answer: NonNullable<NonNullable<NodeState['approval']>['given']>): StepEnd {
  if (answer.choice !== 'reject') return { kind: 'completed', output: toJson(answer) };
  const by = answer.by ? ` by ${answer.by}` : '';
  const comment = answer.comment ? `: ${answer.comment}` : '';
  return { kind: 'failed', error: { code: 'APPROVAL_REJECTED', message: `rejected${by}${comment}` } };
}

/** Why a step that is under way has to end. */
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

/** The step that made a scope stop: one in it that failed, one further out, or the one that it belongs to. */
function stopperOf(
  state: RunState,
  scope: ScopeState,
): { readonly path: string; readonly did: string } | undefined {
  for (let at: ScopeState | undefined = scope; at; ) {
    if (at.cause) return { path: at.cause.path, did: 'failed' };
    const { parent }: { parent: GraphNode | undefined } = at.scope;
    if (parent && state.of(parent).timedOut) return { path: parent.unit, did: 'took too long' };
    at = parent && state.scopeOf(parent.scope);
  }
  return undefined;
}
