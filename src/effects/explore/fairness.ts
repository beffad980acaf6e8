import { RepriseError } from '../../core/index.ts';
import type { Obstacle, PendingEffect } from '../conductor/scheduler.ts';
import { ScheduleCut, type ScheduleVerdict } from './schedule.ts';

export interface FairnessOptions {
  /** Maximum number of moves of a schedule. Defaults to 20,000. */
  readonly mostMoves?: number;
  /** Maximum number of ticks in a row during which lanes only poll and sleep. Defaults to 50. */
  readonly mostIdleTicks?: number;
}

/** Number of ticks for which an enabled lane may be passed over. */
const mostSpareTicks = 12;
/** Number of ticks regained by each move that makes progress. */
const ticksPerMove = 0.1;

/** Prevents endless schedules. */
export class Fairness {
  readonly #mostMoves: number;
  readonly #mostIdleTicks: number;
  #idleTicks = 0;
  #spareTicks = mostSpareTicks;
  #foldsInARow = 0;

  constructor({ mostMoves = 20_000, mostIdleTicks = 50 }: FairnessOptions) {
    this.#mostMoves = mostMoves;
    this.#mostIdleTicks = mostIdleTicks;
  }

  /** Whether time may advance. After many ticks without progress it stops until a lane makes progress. */
  get mayTick(): boolean {
    return this.#idleTicks < this.#mostIdleTicks;
  }

  /** Whether time may advance although a lane is enabled. Without a limit, heartbeats alone would fill a schedule. */
  get mayTickMeanwhile(): boolean {
    return this.mayTick && this.#spareTicks >= 1;
  }

  get foldsTooMuch(): boolean {
    return this.#foldsInARow > this.#mostMoves;
  }

  isTooLong(moves: number): boolean {
    return moves >= this.#mostMoves;
  }

  ticked(): void {
    this.#idleTicks++;
    this.#spareTicks = Math.max(0, this.#spareTicks - 1);
  }

  progressed(): void {
    this.#idleTicks = 0;
    this.#spareTicks = Math.min(mostSpareTicks, this.#spareTicks + ticksPerMove);
  }

  granted(pending: PendingEffect): void {
    this.#foldsInARow = 0;
    if (changesSomething(pending)) this.progressed();
  }

  folded(pending: PendingEffect): void {
    this.#foldsInARow++;
    if (changesSomething(pending)) this.progressed();
  }
}

/** Whether the effect makes progress. Upkeep and reads do not. */
function changesSomething({ effect, keys }: PendingEffect): boolean {
  if (isUpkeep(effect)) return false;
  return (keys.reads?.length ?? 0) === 0 || (keys.writes?.length ?? 0) > 0;
}

/** Whether the effect is a heartbeat, a clock read or a sleep. */
export const isUpkeep = ({ upkeep, name }: PendingEffect['effect']): boolean =>
  upkeep === true || name === 'clock.now' || name === 'clock.sleep';

/** Error for lanes that never end. */
export class NoProgressError extends RepriseError {
  readonly kind: 'deadlock' | 'livelock';

  constructor(kind: 'deadlock' | 'livelock', message: string) {
    super(kind === 'deadlock' ? 'DEADLOCK' : 'LIVELOCK', message);
    this.kind = kind;
  }
}

export interface LaneWait {
  readonly pending: PendingEffect;
  readonly obstacle: Obstacle | undefined;
}

export const deadlock = (waits: readonly LaneWait[]): NoProgressError =>
  new NoProgressError('deadlock', `no lane can continue: ${waitingFor(waits)}`);

export const livelock = (done: string, waits: readonly LaneWait[]): NoProgressError =>
  new NoProgressError('livelock', `the lanes keep running without finishing (${done}): ${waitingFor(waits)}`);

/** Describes what lanes wait for, without those that only sleep between heartbeats: they block no other lane. */
function waitingFor(waits: readonly LaneWait[]): string {
  const awake = waits.filter(({ pending }) => pending.effect.name !== 'clock.sleep');
  return (awake.length > 0 ? awake : waits).map(describeWait).join('; ');
}

function describeWait({ pending, obstacle }: LaneWait): string {
  const { lane, op } = pending;
  if (!obstacle) return `${lane.name} is at ${op}`;
  const what = `${lane.name} waits at ${op}`;
  return obstacle.kind === 'keys'
    ? `${what} (${obstacle.key} is held by ${obstacle.holders.join(', ')})`
    : what;
}

/** Returns the outcome of a schedule that was stopped by an error. */
export function verdictOf(error: unknown): ScheduleVerdict {
  if (error instanceof ScheduleCut) return { kind: 'cut' };
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof NoProgressError) return { kind: 'failed', what: error.kind, message };
  return { kind: 'failed', what: error instanceof RepriseError ? error.code : 'error', message };
}
