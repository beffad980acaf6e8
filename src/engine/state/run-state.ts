import {
  type EventOf,
  type HistoryEvent,
  RepriseError,
  type Timestamp,
  toEpochMs,
} from '../../core/index.ts';
import type { HistoryFolders } from '../environment.ts';
import { unitOfEvent } from './graph.ts';
import { ReadyQueues, SignalQueues } from './ready-queues.ts';
import { type NodeState, newQueueTicket, type PendingTimer } from './step-state.ts';
import { nothingSpent, type SpentTotals, type StepWorkEvent, spentWith, WorkState } from './work-state.ts';

/** An event that concerns a step. */
type RunStepEvent = Exclude<HistoryEvent, { type: `run.${string}` | 'cancel.requested' | 'signal.received' }>;

/** Whether the event can follow the current state of its step, provided that the run is running. */
function isPossible(event: RunStepEvent, state: NodeState): boolean {
  switch (event.type) {
    case 'step.started':
      return state.unmet === 0 && (state.status === 'pending' || isRetried(state));
    case 'step.skipped':
      return state.status === 'pending';
    case 'step.interrupted':
      return state.status === 'running';
    case 'step.resumed':
      return state.status === 'woken';
    case 'step.failed':
    case 'step.cancelled':
    case 'step.retrying':
      return state.active || state.interrupted;
    case 'timer.set':
      return state.active && typeof event.data.timer === 'number';
    case 'approval.given':
      return state.status === 'waiting' && state.approval !== undefined;
    case 'fanout.expanded':
      return state.status === 'running' && state.node.fanOut !== undefined && state.workers === undefined;
    case 'selection.made':
      return state.active && state.workers?.open === 0;
    case 'step.paused':
      return state.status === 'running';
    case 'workspace.created':
    case 'workspace.saved':
    case 'session.started':
    case 'session.named':
    case 'session.ended':
    case 'landing.started':
    case 'landing.ended':
    case 'landing.delivered':
    case 'landing.parked':
    case 'work.checked':
    case 'transition.taken':
      return state.active;
    case 'step.completed':
    case 'step.suspended':
    case 'timer.fired':
    case 'approval.requested':
      return state.active;
  }
}

const isRetried = ({ status, timers }: NodeState): boolean =>
  status === 'woken' && timers?.has('retry') === true;

type RunPhase = 'new' | 'running' | 'completed' | 'failed' | 'cancelled';

/**
 * The state of a run, folded from its history in constant time per event. `apply` is the only way to change it, so the
 * same history always gives the same state. It throws HISTORY_INVALID for an event that cannot follow the previous
 * ones, and HISTORY_DIVERGED for an event of a step that is not in the workflow.
 */
export class RunState extends ReadyQueues {
  phase: RunPhase = 'new';
  lastSeq = 0;
  startedAt: Timestamp | undefined;
  /** Folders that paths in the history refer to; steps receive absolute ones. */
  folders: HistoryFolders = { root: '', stateDir: '' };
  /** Commit that new workspaces start from. */
  base: EventOf<'run.started'>['data']['base'];
  /** Reason to end the run as a whole. */
  cancel: EventOf<'cancel.requested'>['data'] | undefined;
  /** Why the run is being stopped so that it can be resumed. Nothing starts until then. */
  suspended: EventOf<'run.suspended'>['data'] | undefined;
  end: EventOf<'run.completed'> | EventOf<'run.failed'> | EventOf<'run.cancelled'> | undefined;
  spent: SpentTotals = nothingSpent;
  /** Spending by path of the step, over its copies and attempts. */
  readonly spentBySteps = new Map<string, SpentTotals>();
  readonly signals = new SignalQueues();

  apply(event: HistoryEvent): void {
    if (event.seq <= this.lastSeq) throw impossible(event, `it comes after event ${this.lastSeq}`);
    this.lastSeq = event.seq;
    switch (event.type) {
      case 'run.started':
        if (this.phase !== 'new') throw impossible(event, 'the run has already started');
        this.phase = 'running';
        this.startedAt = event.at;
        this.base = event.data.base;
        this.open(this.graph.root, event.data.input);
        return;
      case 'run.resumed':
        if (this.phase !== 'running') throw impossible(event, `the run is ${this.phase}`);
        this.suspended = undefined;
        for (const state of this.active) this.#forgetFuture(state, event.at);
        return;
      case 'run.suspended':
        if (this.phase !== 'running') throw impossible(event, `the run is ${this.phase}`);
        this.suspended ??= event.data;
        return;
      case 'run.completed':
      case 'run.failed':
      case 'run.cancelled':
        if (this.phase !== 'running') throw impossible(event, `the run is ${this.phase}`);
        this.phase =
          event.type === 'run.completed' ? 'completed' : event.type === 'run.failed' ? 'failed' : 'cancelled';
        this.end = event;
        return;
      case 'cancel.requested':
        this.cancel ??= event.data;
        this.stop(this.scopeOf(this.graph.root), 'cancel');
        return;
      case 'signal.received':
        for (const waiter of this.signals.receive(event.data.name, event.data.payload)) this.wake(waiter);
        return;
      default:
        this.#applyToStep(event);
    }
  }

  #applyToStep(event: RunStepEvent): void {
    const unit = unitOfEvent(event);
    const state = unit === undefined ? undefined : this.at(unit);
    if (!state) {
      throw new RepriseError(
        'HISTORY_DIVERGED',
        `event ${event.seq} (${event.type}) names step ${unit}, which is not in the workflow`,
      );
    }
    if (this.phase !== 'running' || !isPossible(event, state)) {
      throw impossible(event, `${state.node.unit} is ${state.status} and the run is ${this.phase}`);
    }
    switch (event.type) {
      case 'step.started':
        this.#start(state, event);
        break;
      case 'step.completed':
        state.output = event.data.output;
        state.artifacts = event.data.artifacts;
        this.settle(state, 'completed', event.at);
        break;
      case 'step.failed':
        state.error = event.data.error;
        state.output = event.data.output;
        this.#fail(state, event.at);
        break;
      case 'step.cancelled':
        state.tainted = true;
        state.output = event.data.output;
        this.settle(state, 'cancelled', event.at);
        break;
      case 'step.skipped':
        state.tainted = this.#skippedForFailure(event.data);
        this.settle(state, 'skipped', event.at);
        break;
      case 'step.interrupted':
        this.#interrupt(state);
        break;
      case 'step.retrying':
        state.interrupted = false;
        state.cancelling = false;
        state.timedOut = undefined;
        state.error = event.data.error;
        this.#setTimer(state, { timer: 'retry', setAt: event.at, ms: event.data.delayMs });
        break;
      case 'step.paused':
        this.#countWork(state, event.at);
        this.#setTimer(state, { timer: 'pause', setAt: event.at, ms: event.data.delayMs });
        break;
      case 'fanout.expanded':
        this.#expand(state, event.data);
        break;
      case 'selection.made':
        state.selection = event.data;
        break;
      case 'workspace.created':
      case 'workspace.saved':
      case 'session.started':
      case 'session.named':
      case 'session.ended':
      case 'landing.started':
      case 'landing.ended':
      case 'landing.delivered':
      case 'landing.parked':
      case 'work.checked':
      case 'transition.taken':
        this.#applyToWork(state, event);
        break;
      case 'timer.set':
        if (typeof event.data.timer === 'number')
          this.#setTimer(state, { timer: event.data.timer, setAt: event.at, ms: event.data.ms });
        break;
      case 'timer.fired':
        this.#fire(state, event.data.timer);
        break;
      case 'step.suspended':
        this.#suspend(state, event);
        break;
      case 'step.resumed':
        state.attemptStartedAt = event.at;
        state.timers?.delete('pause');
        this.setStatus(state, 'running');
        break;
      case 'approval.requested':
        this.#countWork(state, event.at);
        state.approval = { ...event.data, given: undefined };
        this.setStatus(state, 'waiting');
        break;
      case 'approval.given':
        if (state.approval) state.approval.given = event.data;
        this.wake(state);
        break;
    }
  }

  #start(state: NodeState, event: EventOf<'step.started'>): void {
    const { child, fanOut } = state.node;
    const again = child && state.attempt > 0 && !state.interrupted;
    if (!state.interrupted) {
      state.work?.newAttempt();
      state.approval = undefined;
    }
    state.timers?.delete('retry');
    state.interrupted = false;
    state.cancelling = false;
    state.attempt = event.attempt ?? 1;
    state.startedAt ??= event.at;
    state.attemptStartedAt = event.at;
    state.workedMs = 0;
    state.timedOut = undefined;
    // The planner does not run while a long history is folded, so started steps leave the queue here.
    if (this.ready.peek() === state.ticket) this.ready.shift();
    state.ticket = undefined;
    this.setStatus(state, 'running');
    if (!child || fanOut) return;
    if (again) this.resetScope(child);
    this.open(child, event.data.input ?? null);
  }

  #expand(state: NodeState, { total, items }: EventOf<'fanout.expanded'>['data']): void {
    state.items = items;
    state.workers = this.addWorkers(state.node, total);
    this.open(state.workers.scope, null);
  }

  #applyToWork(state: NodeState, event: StepWorkEvent): void {
    state.work ??= new WorkState();
    state.work.apply(event);
    if (event.type !== 'session.ended') return;
    const { path } = state.node;
    const { usage } = event.data;
    this.spent = spentWith(this.spent, usage);
    this.spentBySteps.set(path, spentWith(this.spentBySteps.get(path) ?? nothingSpent, usage));
  }

  #skippedForFailure({ reason, because }: EventOf<'step.skipped'>['data']): boolean {
    if (reason === 'dependency') return because !== undefined && this.at(because)?.tainted === true;
    return reason !== 'condition';
  }

  #fail(state: NodeState, at: Timestamp): void {
    const { node } = state;
    const scope = this.scopeOf(node.scope);
    state.tainted = !node.step.optional;
    if (!node.step.optional && state.error) {
      const inner = this.insideOf(state)?.cause;
      scope.cause ??= inner ?? { path: node.unit, error: state.error };
    }
    this.settle(state, 'failed', at);
    if (node.step.optional || node.scope.onFailure === 'continue') return;
    this.stop(scope, 'failure');
  }

  #interrupt(state: NodeState): void {
    this.setStatus(state, 'pending');
    state.interrupted = true;
    state.work?.interrupt();
    const stop = this.scopeOf(state.node.scope).stop;
    if (state.timedOut || stop === 'cancel' || (stop && state.node.scope.onFailure === 'fail-fast'))
      this.toCancel.push(state);
    else this.ready.push(newQueueTicket(state));
  }

  #setTimer(state: NodeState, timer: PendingTimer): void {
    state.timers ??= new Map();
    state.timers.set(timer.timer, timer);
    if (typeof timer.timer !== 'number') this.setStatus(state, 'waiting');
  }

  #fire(state: NodeState, timer: EventOf<'timer.fired'>['data']['timer']): void {
    if (timer === 'attempt' || timer === 'step') {
      state.timedOut = timer;
      this.cancelNode(state);
    } else if (timer === 'retry' || timer === 'pause') {
      this.wakeUp(state);
    } else {
      state.timers?.delete(timer);
      const wait = state.waits?.get(timer);
      if (wait) wait.answer = { value: null };
      this.wake(state);
    }
  }

  #suspend(state: NodeState, { data, at }: EventOf<'step.suspended'>): void {
    if (data.on === 'approval') return;
    this.#countWork(state, at);
    state.waits ??= new Map();
    const wait = { on: data.on, signal: data.signal, answer: undefined };
    state.waits.set(data.wait, wait);
    if (state.status !== 'woken') this.setStatus(state, 'waiting');
    if (data.on === 'signal' && data.signal && this.signals.wait(data.signal, state, wait)) this.wake(state);
  }

  #countWork(state: NodeState, at: Timestamp): void {
    if (state.status === 'running' && state.attemptStartedAt !== undefined)
      state.workedMs += Math.max(0, toEpochMs(at) - toEpochMs(state.attemptStartedAt));
  }

  /**
   * The wall clock may have been set back while the run had no owner. A timer that was set in the future starts again now, so
   * that it never takes longer than its duration.
   */
  #forgetFuture(state: NodeState, now: Timestamp): void {
    const atMost = (at: Timestamp): Timestamp => (at > now ? now : at);
    for (const [name, timer] of state.timers ?? [])
      state.timers?.set(name, { ...timer, setAt: atMost(timer.setAt) });
    if (state.startedAt !== undefined) state.startedAt = atMost(state.startedAt);
    if (state.attemptStartedAt !== undefined) state.attemptStartedAt = atMost(state.attemptStartedAt);
  }
}

const impossible = (event: HistoryEvent, why: string) =>
  new RepriseError(
    'HISTORY_INVALID',
    `event ${event.seq} of run ${event.runId} (${event.type}${event.step ? ` of ${event.step}` : ''}) is not possible here: ${why}`,
  );
