import type { ErrorData, EventOf, Json, Timestamp } from '../../core/index.ts';
import { type GraphNode, type GraphScope, hasInside } from './graph.ts';
import type { WorkState } from './work-state.ts';

/** First-in, first-out queue with constant-time operations. */
export class Queue<T> {
  #items: T[] = [];
  #head = 0;

  push(item: T): void {
    this.#items.push(item);
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  shift(): T | undefined {
    const item = this.#items[this.#head];
    if (item === undefined) return undefined;
    this.#head++;
    if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  get size(): number {
    return this.#items.length - this.#head;
  }

  clear(): void {
    this.#items = [];
    this.#head = 0;
  }
}

/**
 * Status of a step.
 * `pending`: not started, or interrupted and due to start again. `running`: doing work.
 * `waiting`: for a timer, a signal, an approval or the next attempt, without holding a slot.
 * `woken`: the wait is over, and the step needs a slot again.
 */
type NodeStatus = 'pending' | 'running' | 'waiting' | 'woken' | EndStatus;
export type EndStatus = 'completed' | 'failed' | 'cancelled' | 'skipped';

/** A durable wait of a step, identified by the number of its `ctx` call. */
export interface StepWait {
  readonly on: 'timer' | 'signal' | 'approval';
  readonly signal: string | undefined;
  /** Answer to the wait, set when it is over. */
  answer: { readonly value: Json } | undefined;
}

/** The call number of a sleep, the backoff before the next attempt, or a pause. */
export type DurableTimer = number | 'retry' | 'pause';

/** A timer recorded in history. */
export interface PendingTimer {
  readonly timer: DurableTimer;
  readonly setAt: Timestamp;
  readonly ms: number;
}

export class NodeState {
  status: NodeStatus = 'pending';
  /** Number of the last attempt; 0 before the first. */
  attempt: number;
  /** Number of attempts before a reset. They do not count towards the retry limit. */
  attemptsBefore: number;
  /** Number of dependencies that have not ended. */
  unmet: number;
  output: Json | undefined;
  error: ErrorData | undefined;
  /** Whether a failure of the step or of a dependency keeps it from counting as successful. */
  tainted = false;
  startedAt: Timestamp | undefined;
  /** Time at which this attempt last started or resumed work. */
  attemptStartedAt: Timestamp | undefined;
  /** Time that this attempt had worked before its last wait. Waiting does not count towards its timeout. */
  workedMs = 0;
  endedAt: Timestamp | undefined;
  waits: Map<number, StepWait> | undefined;
  timers: Map<DurableTimer, PendingTimer> | undefined;
  approval: (EventOf<'approval.requested'>['data'] & { given: ApprovalAnswer | undefined }) | undefined;
  /** Timeout that expired while the step was active. */
  timedOut: 'attempt' | 'step' | undefined;
  /** Whether the step is being cancelled, so that its end follows without any further event. */
  cancelling = false;
  /** Whether the step was running when its process died. */
  interrupted = false;
  /** Copies of the step, once it has fanned out. */
  workers: ScopeState | undefined;
  /** Matrix values, one for each copy. */
  items: readonly Json[] | undefined;
  selection: EventOf<'selection.made'>['data'] | undefined;
  artifacts: EventOf<'step.completed'>['data']['artifacts'];
  /** Workspace and sessions of the step. */
  work: WorkState | undefined;
  /** Current ticket in a planner queue. Older tickets are void. */
  ticket: QueueTicket | undefined;

  constructor(
    readonly node: GraphNode,
    attemptsBefore = 0,
  ) {
    this.attempt = attemptsBefore;
    this.attemptsBefore = attemptsBefore;
    this.unmet = node.needs.length;
  }

  get ended(): boolean {
    return isEnd(this.status);
  }

  /** Whether the step has started and not ended. */
  get active(): boolean {
    return this.status === 'running' || this.status === 'waiting' || this.status === 'woken';
  }

  /** Resets the step as if it had not run. The numbers of its attempts continue from the last one. */
  reset(): void {
    Object.assign(this, new NodeState(this.node, this.attempt));
  }
}

/**
 * A position in a planner queue. A step that queues again or restarts gets a new ticket and loses the old one;
 * otherwise the order would depend on when the planner last looked, and not on history alone.
 */
export interface QueueTicket {
  readonly state: NodeState;
}

export function newQueueTicket(state: NodeState): QueueTicket {
  state.ticket = { state };
  return state.ticket;
}

/** Returns the step that holds the ticket, or `undefined` if the ticket is void. */
export const holderOf = (ticket: QueueTicket): NodeState | undefined =>
  ticket.state.ticket === ticket ? ticket.state : undefined;

export interface ApprovalAnswer {
  readonly choice: string;
  readonly by?: string | undefined;
  readonly comment?: string | undefined;
}

/** The state of a scope: the run's workflow, a child workflow or the copies of a step. */
export class ScopeState {
  input: Json = null;
  /** Number of steps that have not ended. */
  open = 0;
  /** Reason that nothing new starts: a step failed, or the whole scope was cancelled. */
  stop: 'failure' | 'cancel' | undefined;
  /** First failure that counts, at any depth. */
  cause: { readonly path: string; readonly error: ErrorData } | undefined;

  /** Copies of a limited fan-out that wait until others have ended. */
  readonly held = new Queue<QueueTicket>();

  constructor(readonly scope: GraphScope) {}
}

const isEnd = (status: NodeStatus): status is EndStatus =>
  status === 'completed' || status === 'failed' || status === 'cancelled' || status === 'skipped';

/** Whether the step takes one of the `max_concurrent_workers` slots while it runs. */
export const needsSlot = (node: GraphNode): boolean => !hasInside(node) && node.step.body.kind !== 'approve';
