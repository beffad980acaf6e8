import type { Json } from '../core/json.ts';
import { Queue } from './queue.ts';
import type { NodeState, Wait } from './state/step-state.ts';

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
