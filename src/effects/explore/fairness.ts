import { RepriseError } from '../../core/errors.ts';
import type { Asked, Obstacle } from '../conductor/scheduler.ts';
import { Cut, type Verdict } from './schedule.ts';

export interface FairnessOptions {
  /** How many moves a schedule may have; 20,000 unless it is said. */
  readonly mostMoves?: number;
  /** How often in a row time may pass while nobody does anything but look and sleep again; 50 unless it is said. */
  readonly mostIdleTicks?: number;
}

/** How long somebody may be left standing while time passes; and what each thing that is done adds to it again. */
const mostSpareTicks = 12;
const sparedByEach = 0.1;

/** Keeps lanes from going on for ever. */
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

  /** Once nothing has come of many ticks, nothing will: time stands still until somebody does something. */
  get mayTick(): boolean {
    return this.#idleTicks < this.#mostIdleTicks;
  }

  /** Whether time may pass although somebody could go on: signs of life alone would fill a schedule otherwise. */
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
    this.#spareTicks = Math.min(mostSpareTicks, this.#spareTicks + sparedByEach);
  }

  granted(asked: Asked): void {
    this.#foldsInARow = 0;
    if (changesSomething(asked)) this.progressed();
  }

  folded(asked: Asked): void {
    this.#foldsInARow++;
    if (changesSomething(asked)) this.progressed();
  }
}

/** Not: to look at what others may have changed. */
function changesSomething({ effect, keys }: Asked): boolean {
  if (isUpkeep(effect)) return false;
  return (keys.reads?.length ?? 0) === 0 || (keys.writes?.length ?? 0) > 0;
}

/** To give signs of life, to look at the clock, to sleep. */
export const isUpkeep = ({ upkeep, name }: Asked['effect']): boolean =>
  upkeep === true || name === 'clock.now' || name === 'clock.sleep';

/** Lanes that come to no end. */
export class Stuck extends RepriseError {
  readonly kind: 'deadlock' | 'livelock';

  constructor(kind: 'deadlock' | 'livelock', message: string) {
    super(kind === 'deadlock' ? 'DEADLOCK' : 'LIVELOCK', message);
    this.kind = kind;
  }
}

export interface Wait {
  readonly asked: Asked;
  readonly obstacle: Obstacle | undefined;
}

export const deadlock = (waits: readonly Wait[]): Stuck =>
  new Stuck('deadlock', `no lane can go on: ${waitingFor(waits)}`);

export const livelock = (done: string, waits: readonly Wait[]): Stuck =>
  new Stuck('livelock', `lanes go on without coming to an end (${done}): ${waitingFor(waits)}`);

/** Whoever only sleeps, to give signs of life, keeps nobody waiting. */
function waitingFor(waits: readonly Wait[]): string {
  const awake = waits.filter(({ asked }) => asked.effect.name !== 'clock.sleep');
  return (awake.length > 0 ? awake : waits).map(describeWait).join('; ');
}

function describeWait({ asked, obstacle }: Wait): string {
  const { lane, op } = asked;
  if (!obstacle) return `${lane.name} is at ${op}`;
  const what = `${lane.name} waits at ${op}`;
  return obstacle.kind === 'keys'
    ? `${what} (${obstacle.key} is held by ${obstacle.holders.join(', ')})`
    : what;
}

/** What an error that stopped a performance says about the schedule. */
export function verdictOf(error: unknown): Verdict {
  if (error instanceof Cut) return { kind: 'cut' };
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof Stuck) return { kind: 'failed', what: error.kind, message };
  return { kind: 'failed', what: error instanceof RepriseError ? error.code : 'error', message };
}
