import type { Crash } from '../../cases/explore/crashes.ts';
import type { Forms } from '../../cases/explore/endings.ts';
import type { Fault } from '../../cases/explore/faults.ts';
import type { PerformedCase } from '../../cases/explore/perform.ts';
import type { Policy } from '../../effects/explore/schedule.ts';

/** What befalls a schedule beside its order. */
export interface Adversity {
  readonly crashes: readonly Crash[];
  readonly faults: readonly Fault[];
}

export const noAdversity: Adversity = { crashes: [], faults: [] };

/** One schedule that is to be played. */
export interface Attempt {
  readonly policy: Policy;
  readonly adversity: Adversity;
  /** How its order is chosen, for people. */
  readonly by: string;
  readonly seed: number;
  /** If it is the recorded order with a crash: what it comes to without one. */
  readonly recorded?: Forms | undefined;
}

/** Where attempts come from. */
export interface Source {
  /** `undefined` when there is nothing to try, before what is under way is learned. */
  next(): Attempt | undefined;
  /** How an attempt went that was given. They are learned in the order in which they were. */
  learn(performed: PerformedCase, attempt: Attempt): void;
}
