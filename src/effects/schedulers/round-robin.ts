import { RepriseError } from '../../core/index.ts';
import {
  canEndByItself,
  type LaneScheduler,
  type LaneStatus,
  type ParkedLane,
  type PendingEffect,
  type SchedulerFactory,
  type SchedulerView,
} from '../conductor/scheduler.ts';
import type { EffectOutcome } from '../effect.ts';

/** Virtual clock. It advances only when nothing else can happen. */
export interface VirtualTime {
  advanceTo(epochMs: number): void;
}

/**
 * A scheduler that runs the lane that has waited longest. It performs every effect, and time advances only when all
 * lanes sleep, so the same lanes always run in the same order, without a recording.
 */
export const roundRobinScheduler =
  (time: VirtualTime): SchedulerFactory<LaneScheduler> =>
  view =>
    new RoundRobinScheduler(view, time);

class RoundRobinScheduler implements LaneScheduler {
  readonly #view: SchedulerView;
  readonly #time: VirtualTime;
  /** Number of the last entry that was granted to each lane. */
  readonly #turns = new Map<string, number>();

  constructor(view: SchedulerView, time: VirtualTime) {
    this.#view = view;
    this.#time = time;
  }

  next(): PendingEffect {
    const waiting = this.#view.statuses().filter(isParked);
    const enabled = waiting.map(({ pending }) => pending).filter(pending => !this.#view.obstacleOf(pending));
    const awake = enabled.filter(pending => !isSleepEnd(pending) || pending.isCancelling);
    const next = awake.toSorted((a, b) => this.#turnOf(a) - this.#turnOf(b))[0] ?? firstToWake(enabled);
    if (!next) throw this.#deadlock(waiting);
    this.#turns.set(next.lane.name, this.#view.granted + 1);
    return next;
  }

  performs(pending: PendingEffect): boolean {
    return pending.effect.name !== 'clock.sleep';
  }

  canEnd(pending: PendingEffect): boolean {
    return canEndByItself(pending);
  }

  answerOf(pending: PendingEffect): EffectOutcome | 'perform' {
    if (this.performs(pending)) return 'perform';
    if (pending.isCancelling) return { kind: 'cancelled' };
    this.#time.advanceTo(Number(pending.args));
    return { kind: 'ok', value: undefined };
  }

  judge(_asked: PendingEffect, _place: unknown, outcome: EffectOutcome): EffectOutcome {
    return outcome;
  }

  laneEnded(): void {}

  finished(): void {}

  #turnOf({ lane }: PendingEffect): number {
    return this.#turns.get(lane.name) ?? 0;
  }

  #deadlock(waiting: readonly ParkedLane[]): Error {
    const lines = waiting.map(({ lane, pending }) => `${lane} waits at ${pending.op}`);
    return new RepriseError('DEADLOCK', `no lane can continue: ${lines.join('; ')}`);
  }
}

const isParked = (status: LaneStatus): status is ParkedLane => status.kind === 'parked';

const isSleepEnd = ({ effect, nextPhase }: PendingEffect): boolean =>
  effect.name === 'clock.sleep' && nextPhase === 'end';

const firstToWake = (sleeping: readonly PendingEffect[]): PendingEffect | undefined =>
  sleeping.toSorted((a, b) => Number(a.args) - Number(b.args))[0];
