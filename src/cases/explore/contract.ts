import type { Coverage } from '../../effects/explore/coverage.ts';
import type { PolicyName } from '../../effects/explore/policies.ts';
import type { Move, Verdict } from '../../effects/explore/schedule.ts';
import type { Adversity, Attempt } from '../../testing/explore/attempt.ts';
import type { CrashCoverage } from '../../testing/explore/crash-points.ts';
import type { Doubt } from '../../testing/explore/doubt.ts';
import type { Theatre } from '../../testing/explore/theatre.ts';
import type { FaultKind } from '../manifest/manifest.ts';
import type { PerformedCase } from './perform.ts';

export interface ExploreOptions {
  readonly policy: PolicyName;
  readonly forMs: number;
  /** At most so many. */
  readonly schedules: number;
  readonly seed: number;
  readonly crashes: boolean;
  /** Every crash of the recorded order comes before anything else, or there is nothing else. Unless it is said, they take turns with other orders. */
  readonly crashPoints?: 'first' | 'only' | undefined;
  readonly faults: readonly FaultKind[];
  /** What effects change is compared with what they say that they write. */
  readonly checkKeys?: boolean | undefined;
  /** Every schedule is played twice, and has to come to the same. */
  readonly twice?: boolean | undefined;
  /** Both, one after the other, unless it is said. */
  readonly on?: 'memory' | 'git' | undefined;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  readonly interrupt?: AbortSignal | undefined;
}

export interface Progress extends Coverage {
  readonly on: Theatre['kind'];
  readonly schedules: number;
  readonly entries: number;
  readonly elapsedMs: number;
  /** If crashes are tried. */
  readonly crashPoints?: CrashCoverage | undefined;
}

/** Why no more was played. */
export type EndedBy = 'failure' | 'interrupt' | 'schedules' | 'time';

/** What came of exploring a case. */
export interface Exploration extends Progress {
  /** Every order was played in which things that conflict can happen while time stands still unless all wait. */
  readonly isComplete: boolean;
  /** Steps which are the same but for their names, so that which of them is which was not tried out. */
  readonly alike: readonly (readonly string[])[];
  /** Schedules of which nothing can be said, because a session was not recorded for what it was asked there. */
  readonly inconclusive: number;
  /** Why, of the first of them. */
  readonly doubt?: string | undefined;
  /** Schedules in which a session was told on another base, or to another prompt, than it was recorded with. */
  readonly counterfactual: number;
  /** Whether it can be told what all one-after-another orders come to, of those that were played. */
  readonly isComparedWithOrders: boolean;
  /** Every crash of the recorded order was tried, and most of so many other orders said nothing: more were not played. */
  readonly givenUp?: Doubt | undefined;
  /** Nothing if there was nothing more to be played. */
  readonly endedBy?: EndedBy | undefined;
  readonly failure?: Failure | undefined;
}

export interface Failure {
  readonly what: string;
  readonly message: string;
  readonly attempt: Pick<Attempt, 'by' | 'seed'>;
  readonly adversity: Adversity;
  readonly isCalm: boolean;
  /** What comes after it comes by itself, with no interruption. */
  readonly trace: readonly Move[];
  /** Where nobody can go on: what lanes wait for. */
  readonly waits: readonly Move[];
}

export const failureOf = (
  { by, seed, adversity, policy }: Attempt,
  { trace, verdict, left }: PerformedCase,
  { what, message }: Pick<Failure, 'what' | 'message'>,
): Failure => ({
  what,
  message,
  attempt: { by, seed },
  adversity,
  isCalm: policy.isCalm ?? false,
  trace,
  waits: waitsOf(verdict, left),
});

export const waitsOf = (verdict: Verdict, left: readonly Move[]): readonly Move[] =>
  verdict.kind === 'failed' && verdict.what === 'deadlock' ? left : [];
