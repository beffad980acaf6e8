import type { Asked } from '../conductor/scheduler.ts';

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
