import { RepriseError } from '../../core/errors.ts';
import type { Json } from '../../core/json.ts';
import type { Timestamp } from '../../core/time.ts';
import { expand, type Graph, type GraphNode, type GraphScope } from './graph.ts';
import {
  type EndStatus,
  NodeState,
  newTicket,
  Queue,
  ScopeState,
  type Ticket,
  takesPlace,
  type Wait,
} from './step-state.ts';

/** The states of all steps and workers of a run, which fan-outs add to. */
class UnitTable {
  readonly nodes: NodeState[];
  readonly #scopes: ScopeState[];
  /** Workers, and what is inside them, by unit: the graph does not know them. */
  readonly #expanded = new Map<string, NodeState>();
  readonly #attempts: ReadonlyMap<string, number>;
  /** Most events are about the same unit as the one before. */
  #lastAsked: NodeState | undefined;

  /** `attempts`: how often units were tried before they were invalidated. */
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

  /** The step or worker of that name. */
  at(unit: string): NodeState | undefined {
    if (this.#lastAsked?.node.unit === unit) return this.#lastAsked;
    const node = this.graph.byPath.get(unit);
    this.#lastAsked = node ? this.of(node) : this.#expanded.get(unit);
    return this.#lastAsked;
  }

  /** What is inside of it: the steps of a child workflow, or the workers that it has become. */
  insideOf({ node, workers }: NodeState): ScopeState | undefined {
    if (node.fanOut) return workers;
    return node.child && this.scopeOf(node.child);
  }

  /** Makes the workers of a step that fans out. Their attempts go on counting if it did so before. */
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

  /** Everything in it back to the beginning; workers are made anew. */
  protected resetScope(scope: GraphScope): void {
    Object.assign(this.scopeOf(scope), new ScopeState(scope));
    for (const node of scope.nodes) {
      this.of(node).reset();
      if (node.child && !node.fanOut) this.resetScope(node.child);
    }
  }
}

/** Which steps are under way, and the lines in which the others stand until the planner comes to them. */
export class Lines extends UnitTable {
  /** How many steps hold one of the places. */
  placesTaken = 0;

  /** What the planner looks at next. Entries may have become stale: it checks. */
  readonly ready = new Queue<Ticket>();
  /** Ready, and in want of a place among the running. */
  readonly queued = new Queue<Ticket>();
  readonly woken = new Queue<Ticket>();
  /** At work, and what one of their waits was for has come. */
  readonly answered = new Queue<NodeState>();
  readonly toCancel = new Queue<NodeState>();
  readonly toClose = new Queue<ScopeState>();
  /** Steps under way. */
  readonly active = new Set<NodeState>();

  protected open(scope: GraphScope, input: ScopeState['input']): void {
    const state = this.scopeOf(scope);
    state.input = input;
    state.open = scope.nodes.length;
    if (state.open === 0) this.toClose.push(state);
    const limit = scope.kind === 'workers' ? scope.fanOut.maxParallel : undefined;
    scope.nodes.forEach((node, index) => {
      if (node.needs.length > 0) return;
      const line = limit !== undefined && index >= limit ? state.held : this.ready;
      line.push(newTicket(this.of(node)));
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
      if (--dependant.unmet === 0) this.ready.push(newTicket(dependant));
    }
    if (scope.open === 0) this.toClose.push(scope);
  }

  /** Nothing new starts in the scope; what is under way is cancelled, unless the policy lets it finish. */
  protected stop(scope: ScopeState, why: 'failure' | 'cancel'): void {
    if (scope.stop === 'cancel' || scope.stop === why) return;
    scope.stop = why;
    const finishes = why === 'failure' && scope.scope.onFailure === 'finish-running';
    for (const node of scope.scope.nodes) {
      const state = this.of(node);
      if (state.status === 'pending' && state.unmet === 0 && !state.interrupted)
        this.ready.push(newTicket(state));
      if (!state.active && !state.interrupted) continue;
      if (!finishes || !canFinish(state)) this.cancelNode(state);
    }
  }

  protected cancelNode(state: NodeState): void {
    const inside = this.insideOf(state);
    const isSelecting = state.node.fanOut?.select !== undefined && inside?.open === 0;
    if (inside && !isSelecting && state.status === 'running') this.stop(inside, 'cancel');
    else this.toCancel.push(state);
  }

  /** What one of its waits was for has come. A step that waits for its next attempt is not woken by the last one's waits. */
  protected wake(state: NodeState): void {
    if (state.status === 'running') this.answered.push(state);
    if (!state.timers?.has('retry')) this.wakeUp(state);
  }

  protected wakeUp(state: NodeState): void {
    if (state.status !== 'waiting') return;
    this.setStatus(state, 'woken');
    this.woken.push(newTicket(state));
  }

  protected setStatus(state: NodeState, status: NodeState['status']): void {
    if (takesPlace(state.node))
      this.placesTaken += Number(status === 'running') - Number(state.status === 'running');
    state.status = status;
    if (state.active) this.active.add(state);
    else this.active.delete(state);
  }
}

/** A step that waits for a person or a signal might never end; a timer will. One that was interrupted is not done yet. */
function canFinish(state: NodeState): boolean {
  if (state.interrupted || state.status === 'running' || state.status === 'woken') return true;
  return [...(state.timers?.keys() ?? [])].some(timer => timer !== 'retry');
}

interface Waiter {
  readonly state: NodeState;
  readonly wait: Wait;
}

/**
 * Who gets which signal: the first to wait gets the first to come, and a signal that nobody waits for yet is kept.
 */
export class SignalBook {
  readonly #early = new Map<string, Queue<Json>>();
  readonly #waiters = new Map<string, Queue<Waiter>>();

  /** The steps that the signal wakes: one, or none yet. */
  receive(name: string, payload: Json): readonly NodeState[] {
    const waiters = this.#waiters.get(name);
    for (let waiter = waiters?.shift(); waiter; waiter = waiters?.shift()) {
      // A step that ended, or started over, no longer waits.
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

  /** Whether the signal has come already. */
  wait(name: string, state: NodeState, wait: Wait): boolean {
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
