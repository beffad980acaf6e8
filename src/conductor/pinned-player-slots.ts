import type { Asked } from '../effects/conductor/scheduler.ts';
import type { Outcome } from '../world/outcome.ts';

interface TakeSlot {
  readonly key: string;
  readonly agent: string;
  readonly places: number;
}

/**
 * Which places of agents are taken. Whoever waits for one must not be performed before it is given back: nobody else
 * goes on during a performance, so that it would wait for ever.
 */
export class SlotsTaken {
  /** The agent, by the key of whoever has a place of it. */
  readonly #taken = new Map<string, string>();

  note({ effect, args, nextPhase }: Asked, { kind }: Outcome): void {
    if (effect.name === 'agent.release-slot') this.#taken.delete((args as Pick<TakeSlot, 'key'>).key);
    else if (effect.name === 'agent.take-slot' && nextPhase === 'end' && kind === 'ok') {
      const { key, agent } = args as TakeSlot;
      this.#taken.set(key, agent);
    }
  }

  isFreeFor({ effect, args }: Asked): boolean {
    if (effect.name !== 'agent.take-slot') return true;
    const { agent, places } = args as TakeSlot;
    return [...this.#taken.values()].filter(taken => taken === agent).length < places;
  }
}
