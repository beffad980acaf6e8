import type { Performed, Policy } from '../../effects/explore/schedule.ts';

/** A way to choose many schedules, each of which may depend on how those before went. */
export interface Strategy {
  /** The policy of the next schedule; `undefined` when there is nothing to try, before what is under way is learned. */
  next(): Policy | undefined;
  /** How a schedule went that was given. */
  learn(performed: Performed, policy: Policy): void;
}
