import type { ErrorData } from '../../core/errors.ts';
import type { EventOf } from '../../core/events.ts';
import type { Json } from '../../core/json.ts';
import type { Timestamp } from '../../core/time.ts';
import { type GraphNode, type GraphScope, hasInside } from './graph.ts';
import type { WorkState } from './work-state.ts';

/** First in, first out, in constant time. */
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
 * Where a step stands.
 * `pending`: not started, or interrupted and to be started again. `running`: at work.
 * `waiting`: for a timer, a signal, a person or its next attempt; it takes no place among the running.
 * `woken`: what it waited for has come, and it wants its place back.
 */
type NodeStatus = 'pending' | 'running' | 'waiting' | 'woken' | EndStatus;
export type EndStatus = 'completed' | 'failed' | 'cancelled' | 'skipped';

/** One durable wait of a step, by the number of its `ctx` call. */
export interface Wait {
  readonly on: 'timer' | 'signal' | 'approval';
  readonly signal: string | undefined;
  /** Set when it is over: what came. */
  answer: { readonly value: Json } | undefined;
}

/** A sleep by the number of its call, the backoff before the next attempt, or a pause. */
export type DurableTimer = number | 'retry' | 'pause';

/** A timer that history knows of: how long, and since when. */
export interface PendingTimer {
  readonly timer: DurableTimer;
  readonly setAt: Timestamp;
  readonly ms: number;
}

export class NodeState {
  status: NodeStatus = 'pending';
  /** Of the last start; 0 before the first. */
  attempt: number;
  /** Attempts from before it was started over, which do not count towards its retries. */
  attemptsBefore: number;
  /** How many of its dependencies have not ended. */
  unmet: number;
  output: Json | undefined;
  error: ErrorData | undefined;
  /** A failure, its own or of what it needed, keeps it from having succeeded. */
  tainted = false;
  startedAt: Timestamp | undefined;
  /** When this attempt was last put to work. */
  attemptStartedAt: Timestamp | undefined;
  /** How long this attempt had been at work before its last wait: waiting does not count towards its limit. */
  workedMs = 0;
  endedAt: Timestamp | undefined;
  waits: Map<number, Wait> | undefined;
  timers: Map<DurableTimer, PendingTimer> | undefined;
  approval:
    | { readonly message: string; readonly choices: readonly string[]; given: ApprovalAnswer | undefined }
    | undefined;
  /** Which limit ran out while it was under way. */
  timedOut: 'attempt' | 'step' | undefined;
  /** It was at work when its process died. */
  interrupted = false;
  /** The workers that it has become. */
  workers: ScopeState | undefined;
  /** The values of each worker. */
  items: readonly Json[] | undefined;
  selection: EventOf<'selection.made'>['data'] | undefined;
  artifacts: EventOf<'step.completed'>['data']['artifacts'];
  /** Its workspace and sessions. */
  work: WorkState | undefined;
  /** Its place in a line of the planner; older ones no longer count. */
  ticket: Ticket | undefined;

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

  /** Under way: started and not ended. */
  get active(): boolean {
    return this.status === 'running' || this.status === 'waiting' || this.status === 'woken';
  }

  /** Back to the beginning, as if it had not run; its attempts go on counting. */
  reset(): void {
    Object.assign(this, new NodeState(this.node, this.attempt));
  }
}

/**
 * A place in a line of the planner. A step that lines up again, or starts over, loses its old place: otherwise the
 * order would depend on when the planner last looked, and not on history alone.
 */
export interface Ticket {
  readonly state: NodeState;
}

export function newTicket(state: NodeState): Ticket {
  state.ticket = { state };
  return state.ticket;
}

/** The step whose turn it is, unless it gave up that place. */
export const holderOf = (ticket: Ticket): NodeState | undefined =>
  ticket.state.ticket === ticket ? ticket.state : undefined;

interface ApprovalAnswer {
  readonly choice: string;
  readonly by?: string | undefined;
  readonly comment?: string | undefined;
}

/** The state of one workflow: of the run itself, or of a child. */
export class ScopeState {
  input: Json = null;
  /** Steps that have not ended. */
  open = 0;
  /** Why nothing new starts: a step failed, or the whole scope was cancelled. */
  stop: 'failure' | 'cancel' | undefined;
  /** The first failure that counts, of whatever depth. */
  cause: { readonly path: string; readonly error: ErrorData } | undefined;

  /** Workers of a limited fan-out that wait until others have ended. */
  readonly held = new Queue<Ticket>();

  constructor(readonly scope: GraphScope) {}
}

const isEnd = (status: NodeStatus): status is EndStatus =>
  status === 'completed' || status === 'failed' || status === 'cancelled' || status === 'skipped';

/** Whether the step takes one of the `max_concurrent_workers` places while it runs. */
export const takesPlace = (node: GraphNode): boolean => !hasInside(node) && node.step.body.kind !== 'approve';
