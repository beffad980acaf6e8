import type { Keys } from '../../effects/effect.ts';
import type { Move } from '../../effects/explore/schedule.ts';

/** What a lane of the outside sees when it is asked what it could do. */
export interface OutsideView {
  /** How many moves were made. */
  readonly n: number;
  /** How many effects were granted. */
  readonly entries: number;
  /** The move that was made last. */
  readonly last: Move | undefined;
  /** What lanes of the program could do now. */
  readonly enabled: readonly Move[];
  isAlive(lane: string): boolean;
}

/** Something that could happen now. Nobody goes on before `act` is over; it may leave lanes behind, and open new ones. */
export interface OutsideMove {
  readonly op: string;
  readonly keys: Keys;
  /** It may as well never happen: lanes that could go on after nothing else are stuck. */
  readonly isOptional?: boolean;
  act(): void | Promise<void>;
}

/** A lane of things that happen to the program: crashes, faults. */
export interface OutsideLane {
  readonly lane: string;
  next(view: OutsideView): OutsideMove | undefined;
}
