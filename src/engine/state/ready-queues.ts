import type { Timestamp } from '../../core/time.ts';
import { Queue } from '../queue.ts';
import { UnitTable } from '../unit-table.ts';
import type { GraphScope } from './graph.ts';
import {
  type EndStatus,
  type NodeState,
  newTicket,
  type ScopeState,
  type Ticket,
  takesPlace,
} from './step-state.ts';

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
