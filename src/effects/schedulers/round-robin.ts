import { RepriseError } from '../../core/errors.ts';
import {
  type Asked,
  canEndByItself,
  type LanePlayer,
  type PlayerFactory,
  type Standing,
  type View,
} from '../conductor/scheduler.ts';
import type { Outcome } from '../effect.ts';

/** Time that passes only when nothing else happens. */
export interface VirtualTime {
  advanceTo(epochMs: number): void;
}

/**
 * Lets lanes take turns: whoever has waited longest goes on. Everything is performed, and time passes only when all
 * lanes sleep; so the same lanes always go the same way, without any recording.
 */
export const freePlayer =
  (time: VirtualTime): PlayerFactory<LanePlayer> =>
  view =>
    new FreePlayer(view, time);

class FreePlayer implements LanePlayer {
  readonly #view: View;
  readonly #time: VirtualTime;
  /** When a lane went on last. */
  readonly #turns = new Map<string, number>();

  constructor(view: View, time: VirtualTime) {
    this.#view = view;
    this.#time = time;
  }

  next(): Asked {
    const waiting = this.#view.standings().filter(isParked);
    const enabled = waiting.map(({ asked }) => asked).filter(asked => !this.#view.obstacleOf(asked));
    const awake = enabled.filter(asked => !isSleepEnd(asked) || asked.isDoomed);
    const next = awake.toSorted((a, b) => this.#turnOf(a) - this.#turnOf(b))[0] ?? firstToWake(enabled);
    if (!next) throw this.#deadlock(waiting);
    this.#turns.set(next.lane.name, this.#view.granted + 1);
    return next;
  }

  performs(asked: Asked): boolean {
    return asked.effect.name !== 'clock.sleep';
  }

  canEnd(asked: Asked): boolean {
    return canEndByItself(asked);
  }

  answerOf(asked: Asked): Outcome | 'perform' {
    if (this.performs(asked)) return 'perform';
    if (asked.isDoomed) return { kind: 'cancelled' };
    this.#time.advanceTo(Number(asked.args));
    return { kind: 'ok', value: undefined };
  }

  judge(_asked: Asked, _place: unknown, outcome: Outcome): Outcome {
    return outcome;
  }

  laneEnded(): void {}

  finished(): void {}

  #turnOf({ lane }: Asked): number {
    return this.#turns.get(lane.name) ?? 0;
  }

  #deadlock(waiting: readonly Parked[]): Error {
    const lines = waiting.map(({ lane, asked }) => `${lane} waits at ${asked.op}`);
    return new RepriseError('DEADLOCK', `no lane can go on: ${lines.join('; ')}`);
  }
}

type Parked = Extract<Standing, { kind: 'parked' }>;

const isParked = (standing: Standing): standing is Parked => standing.kind === 'parked';

const isSleepEnd = ({ effect, nextPhase }: Asked): boolean =>
  effect.name === 'clock.sleep' && nextPhase === 'end';

const firstToWake = (sleeping: readonly Asked[]): Asked | undefined =>
  sleeping.toSorted((a, b) => Number(a.args) - Number(b.args))[0];
