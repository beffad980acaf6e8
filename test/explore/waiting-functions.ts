import type { Asked, Player } from '../../src/effects/conductor/scheduler.ts';
import type { Tracer } from '../../src/effects/tracer.ts';
import type { Turn } from '../../src/engine/run/function-step.ts';

/**
 * Functions that wait for somebody else: for an answer of the engine, or for what another step does, which is no effect. In
 * a world in which one thing is performed at a time, nobody would come to do it once they were let go on.
 */
export class WaitingFunctions {
  /** By call, how many questions have no answer. */
  readonly #open = new Map<string, number>();
  #hasFailed = false;

  readonly tracer: Tracer = {
    granted: () => {},
    settled: ({ effect, args }, _place, outcome) => {
      if (outcome.kind !== 'ok') return;
      if (effect.name === 'function.next') this.#add(String(args), questionsIn(outcome.value as Turn));
      if (effect.name === 'function.answer') this.#add((args as { readonly key: string }).key, -1);
    },
  };

  failureSeen(): void {
    this.#hasFailed = true;
  }

  /** The same player, but for those. */
  heeded(player: Player): Player {
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

  #waits({ effect, args, isDoomed }: Asked): boolean {
    if (effect.name !== 'function.next' || isDoomed) return false;
    const call = String(args);
    if (call.endsWith(':held')) return true;
    if (call.endsWith(':running')) return !this.#hasFailed;
    return (this.#open.get(call) ?? 0) > 0;
  }

  #add(call: string, questions: number): void {
    this.#open.set(call, Math.max(0, (this.#open.get(call) ?? 0) + questions));
  }
}

const questionsIn = (turn: Turn): number => (turn.kind === 'asked' ? turn.questions.length : 0);
