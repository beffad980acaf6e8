import type { Performed, Policy } from './move.ts';

/** A way to choose many schedules, one after another, each of which may depend on how those before went. */
export interface Strategy {
  /** The policy of the next schedule; `undefined` when there is nothing left to try. */
  next(): Policy | undefined;
  /** How the schedule went that was given last. */
  learn(performed: Performed): void;
}
