import { type Json, RepriseError, type Timestamp } from '../../core/index.ts';
import { expand, type Graph, type GraphNode, type GraphScope } from './graph.ts';
import {
  type EndStatus,
  NodeState,
  needsSlot,
  newQueueTicket,
  Queue,
  type QueueTicket,
  ScopeState,
  type StepWait,
} from './step-state.ts';

/** The states of all steps and copies of a run. Fan-outs add to them. */
class StepStates {
  readonly nodes: NodeState[];
  readonly #scopes: ScopeState[];
  /** Copies and the steps inside them, by unit. They are not part of the graph. */
  readonly #expanded = new Map<string, NodeState>();
  readonly #attempts: ReadonlyMap<string, number>;
  /** Last lookup: consecutive events are mostly about the same unit. */
  #lastAsked: NodeState | undefined;

  /** `attempts` holds the number of attempts that units had before they were invalidated. */
  constructor(
    readonly graph: Graph,
    attempts: ReadonlyMap<string, number> = new Map(),
  ) {
    this.#attempts = attempts;
    this.nodes =
      attempts.size === 0
        ? graph.nodes.map(node => new NodeState(node))
        : graph.nodes.map(node => new NodeState(node, attempts.get(node.unit)));
    this.#scopes = graph.scopes.map(scope => new ScopeState(scope));
  }

  of(node: GraphNode): NodeState {
    const state = this.nodes[node.index];
    if (!state) throw new RepriseError('INTERNAL', `${node.unit} is not in this graph`);
    return state;
  }

  scopeOf(scope: GraphScope): ScopeState {
    const state = this.#scopes[scope.index];
    if (!state) throw new RepriseError('INTERNAL', `scope ${scope.index} is not in this graph`);
    return state;
  }

  /** Returns the state of a unit. */
  at(unit: string): NodeState | undefined {
    if (this.#lastAsked?.node.unit === unit) return this.#lastAsked;
    const node = this.graph.byPath.get(unit);
    this.#lastAsked = node ? this.of(node) : this.#expanded.get(unit);
    return this.#lastAsked;
  }

  /** Returns the scope inside a step: its child workflow or its copies. */
  insideOf({ node, workers }: NodeState): ScopeState | undefined {
    if (node.fanOut) return workers;
    return node.child && this.scopeOf(node.child);
  }

  /** Creates the copies of a step that fans out. If it fanned out before, their attempts continue to count. */
  protected addWorkers(parent: GraphNode, total: number): ScopeState {
    const added = expand(parent, total, {
      firstNode: this.nodes.length,
      firstScope: this.#scopes.length,
    });
    this.#lastAsked = undefined;
    for (const node of added.nodes) {
      const before = this.#expanded.get(node.unit)?.attempt ?? this.#attempts.get(node.unit);
      const inside = new NodeState(node, before);
      this.nodes.push(inside);
      this.#expanded.set(node.unit, inside);
    }
    for (const scope of added.scopes) this.#scopes.push(new ScopeState(scope));
    return this.scopeOf(added.workers);
  }

  /** Resets every step of a scope. Copies are created again. */
  protected resetScope(scope: GraphScope): void {
    Object.assign(this.scopeOf(scope), new ScopeState(scope));
    for (const node of scope.nodes) {
      this.of(node).reset();
      if (node.child && !node.fanOut) this.resetScope(node.child);
    }
  }
}

/** Tracks the active steps and queues the others for the planner. */
export class ReadyQueues extends StepStates {
  /** Number of slots in use. */
  slotsTaken = 0;

  /** Steps that the planner considers next. Entries may be stale; the planner checks them. */
  readonly ready = new Queue<QueueTicket>();
  /** Ready steps that wait for a slot. */
  readonly queued = new Queue<QueueTicket>();
  readonly woken = new Queue<QueueTicket>();
  /** Running steps with a newly answered wait. */
  readonly answered = new Queue<NodeState>();
  readonly toCancel = new Queue<NodeState>();
  readonly toClose = new Queue<ScopeState>();
  /** Steps that have started and not ended. */
  readonly active = new Set<NodeState>();
  /** Scopes with a failure that let their running steps finish. */
  readonly #finishing = new Set<ScopeState>();

  protected open(scope: GraphScope, input: ScopeState['input']): void {
    const state = this.scopeOf(scope);
    state.input = input;
    state.open = scope.nodes.length;
    if (state.open === 0) this.toClose.push(state);
    const limit = scope.kind === 'workers' ? scope.fanOut.maxParallel : undefined;
    scope.nodes.forEach((node, index) => {
      if (node.needs.length > 0) return;
      const line = limit !== undefined && index >= limit ? state.held : this.ready;
      line.push(newQueueTicket(this.of(node)));
    });
  }

  protected settle(state: NodeState, status: EndStatus, at: Timestamp): void {
    this.setStatus(state, status);
    state.endedAt = at;
    state.interrupted = false;
    state.timers = undefined;
    const scope = this.scopeOf(state.node.scope);
    scope.open--;
    const next = scope.held.shift();
    if (next) this.ready.push(next);
    for (const node of state.node.dependants) {
      const dependant = this.of(node);
      if (--dependant.unmet === 0) this.ready.push(newQueueTicket(dependant));
    }
    if (scope.open === 0) this.toClose.push(scope);
  }

  /** Starts nothing new in the scope, and cancels active steps unless the failure policy lets them finish. */
  protected stop(scope: ScopeState, why: 'failure' | 'cancel'): void {
    if (scope.stop === 'cancel' || scope.stop === why) return;
    scope.stop = why;
    const finishes = why === 'failure' && scope.scope.onFailure === 'finish-running';
    if (finishes) this.#finishing.add(scope);
    for (const node of scope.scope.nodes) {
      const state = this.of(node);
      if (state.status === 'pending' && state.unmet === 0 && !state.interrupted)
        this.ready.push(newQueueTicket(state));
      if (!state.active && !state.interrupted) continue;
      if (!finishes || !canFinish(state)) this.cancelNode(state);
    }
  }

  /**
   * Cancels the steps that could finish after a failure but now only wait, such as a child workflow that has come to an
   * approval. Otherwise the approval would hide the failure.
   */
  cancelStranded(): void {
    if (this.#finishing.size === 0 || this.canAdvance()) return;
    for (const { scope, stop } of this.#finishing) {
      if (stop !== 'failure') continue;
      for (const node of scope.nodes) {
        const state = this.of(node);
        if (state.active) this.cancelNode(state);
      }
    }
    this.#finishing.clear();
  }

  /** Whether the run can advance without an approval or a signal. */
  canAdvance(): boolean {
    for (const state of this.active) {
      const inside = this.insideOf(state);
      if (state.cancelling || (state.timers?.size ?? 0) > 0) return true;
      // The steps inside decide, until all of them have ended.
      if (state.status !== 'waiting' && (!inside || inside.open === 0)) return true;
    }
    return false;
  }

  protected cancelNode(state: NodeState): void {
    const inside = this.insideOf(state);
    const isSelecting = state.node.fanOut?.select !== undefined && inside?.open === 0;
    if (inside && !isSelecting && state.status === 'running') this.stop(inside, 'cancel');
    else this.toCancel.push(state);
  }

  /** Handles the answer to a wait. It does not wake a step in backoff: the wait belongs to the attempt before. */
  protected wake(state: NodeState): void {
    if (state.status === 'running') this.answered.push(state);
    if (!state.timers?.has('retry')) this.wakeUp(state);
  }

  protected wakeUp(state: NodeState): void {
    if (state.status !== 'waiting') return;
    this.setStatus(state, 'woken');
    this.woken.push(newQueueTicket(state));
  }

  protected setStatus(state: NodeState, status: NodeState['status']): void {
    if (needsSlot(state.node))
      this.slotsTaken += Number(status === 'running') - Number(state.status === 'running');
    state.status = status;
    if (state.active) this.active.add(state);
    else this.active.delete(state);
  }
}

/** A timer ends eventually, but an approval or a signal may never come. An interrupted step still has work to do. */
function canFinish(state: NodeState): boolean {
  if (state.interrupted || state.status === 'running' || state.status === 'woken') return true;
  return [...(state.timers?.keys() ?? [])].some(timer => timer !== 'retry');
}

interface Waiter {
  readonly state: NodeState;
  readonly wait: StepWait;
}

/** Matches signals with waits in order of arrival, and keeps a signal that no step waits for yet. */
export class SignalQueues {
  readonly #early = new Map<string, Queue<Json>>();
  readonly #waiters = new Map<string, Queue<Waiter>>();

  /** Returns the step that the signal wakes, if any. */
  receive(name: string, payload: Json): readonly NodeState[] {
    const waiters = this.#waiters.get(name);
    for (let waiter = waiters?.shift(); waiter; waiter = waiters?.shift()) {
      // A step that ended or restarted no longer waits.
      if (
        waiter.state.waits === undefined ||
        waiter.state.ended ||
        ![...waiter.state.waits.values()].includes(waiter.wait)
      )
        continue;
      waiter.wait.answer = { value: payload };
      return [waiter.state];
    }
    queueOf(this.#early, name).push(payload);
    return [];
  }

  /** Returns whether the signal has already arrived; if not, the step waits for it. */
  wait(name: string, state: NodeState, wait: StepWait): boolean {
    const early = this.#early.get(name);
    if (early && early.size > 0) {
      wait.answer = { value: early.shift() ?? null };
      return true;
    }
    queueOf(this.#waiters, name).push({ state, wait });
    return false;
  }
}

function queueOf<T>(queues: Map<string, Queue<T>>, name: string): Queue<T> {
  let queue = queues.get(name);
  if (!queue) {
    queue = new Queue();
    queues.set(name, queue);
  }
  return queue;
}
