import type { Outcome } from '../../world/outcome.ts';
import type { Keys } from '../effect.ts';

/** One entry of the order, with what was asked and answered. */
export interface RecordedEntry {
  /** Its place in the order, from 0, without gaps. */
  readonly n: number;
  /** Full name: `worker_a/engine#0/3`. */
  readonly lane: string;
  /** Its place within the lane, from 0, without gaps. */
  readonly i: number;
  /** The effect's name; of a long one with `.begin` or `.end`. */
  readonly op: string;
  /** Of a short effect and of a begin. */
  readonly keys?: Keys | undefined;
  /** What of the arguments is compared; of a short effect and of a begin. */
  readonly args?: unknown;
  /** Absent for a begin, and for what a crash cut off. */
  readonly outcome?: Outcome | undefined;
}

/** How much went on at once, so that a replay in which less does is noticed. */
export interface Witness {
  /** Lanes at the top (the steps of a case) that were open at the same time. */
  readonly mostOpen: number;
  /** Long effects that were under way at the same time. */
  readonly mostInFlight: number;
  /** How often the order goes from one lane at the top to another. */
  readonly switches: number;
}

/** All that was asked and answered, in its order. Placeholders of paths and secrets are still in it. */
export interface Recording {
  readonly entries: readonly RecordedEntry[];
  readonly witness: Witness;
}

/** The lane at the top that a lane is below of: the step of a case. */
export const topLane = (lane: string): string => {
  const end = lane.indexOf('/');
  return end < 0 ? lane : lane.slice(0, end);
};
