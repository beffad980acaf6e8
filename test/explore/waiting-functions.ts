import type { PendingEffect, Scheduler } from '../../src/effects/conductor/scheduler.ts';
import type { Tracer } from '../../src/effects/tracer.ts';
import type { FunctionTurn } from '../../src/engine/run/function-step.ts';

/**
 * Tracks functions that wait: for an answer of the engine, or for another step without an effect. Only one effect is
 * performed at a time, so granting the next turn of such a function too early would block the one that it waits for.
 */
export class WaitingFunctions {
  /** Number of unanswered questions, by call. */
  readonly #open = new Map<string, number>();
  #hasFailed = false;

  readonly tracer: Tracer = {
    granted: () => {},
    settled: ({ effect, args }, _place, outcome) => {
      if (outcome.kind !== 'ok') return;
      if (effect.name === 'function.next')
        this.#add(String(args), questionsIn(outcome.value as FunctionTurn));
      if (effect.name === 'function.answer') this.#add((args as { readonly key: string }).key, -1);
    },
  };

  failureSeen(): void {
    this.#hasFailed = true;
  }

  /** Wraps a scheduler so that a waiting function does not end its turn. */
  withWaiting(player: Scheduler): Scheduler {
    return {
      next: () => player.next(),
      performs: asked => player.performs(asked),
      canEnd: asked => player.canEnd(asked) && !this.#waits(asked),
      answerOf: (asked, place) => player.answerOf(asked, place),
      judge: (asked, place, outcome) => player.judge(asked, place, outcome),
      laneEnded: (lane, entries) => player.laneEnded(lane, entries),
      finished: witness => player.finished(witness),
    };
  }

  #waits({ effect, args, isCancelling }: PendingEffect): boolean {
    if (effect.name !== 'function.next' || isCancelling) return false;
    const call = String(args);
    if (call.endsWith(':held')) return true;
    if (call.endsWith(':running')) return !this.#hasFailed;
    return (this.#open.get(call) ?? 0) > 0;
  }

  #add(call: string, questions: number): void {
    this.#open.set(call, Math.max(0, (this.#open.get(call) ?? 0) + questions));
  }
}

const questionsIn = (turn: FunctionTurn): number => (turn.kind === 'asked' ? turn.questions.length : 0);
