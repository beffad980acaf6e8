import type { Coverage } from '../../effects/explore/coverage.ts';
import type { PolicyName } from '../../effects/explore/policies.ts';
import type { Move, Policy, Verdict } from '../../effects/explore/schedule.ts';
import { notDeterministic } from '../../effects/explore/search.ts';
import type { FaultKind } from '../manifest/manifest.ts';
import type { Theatre } from './backends.ts';
import type { CrashCoverage } from './crash-points.ts';
import type { Crash } from './crashes.ts';
import type { Forms } from './endings.ts';
import type { Fault } from './faults.ts';
import { isAboutKeys } from './key-check/check.ts';
import type { PerformedCase } from './perform.ts';

/** Something that must never be. */
export interface Violation {
  /** A few words that stay the same from schedule to schedule: two failures with the same words are the same failure. */
  readonly what: string;
  /** One sentence for people. */
  readonly message: string;
}

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

/** Of how many schedules nothing can be said. */
export interface Doubt {
  readonly inconclusive: number;
  readonly schedules: number;
}

/** Above this share of doubt, nothing was shown of a case. */
export const mostDoubt = 0.2;

export const isTooMuch = (doubt: Doubt): boolean => shareOf(doubt) > mostDoubt;

/** More of them say nothing than something. */
export const isMost = (doubt: Doubt): boolean => shareOf(doubt) > 0.5;

export const shareOf = ({ inconclusive, schedules }: Doubt): number =>
  schedules === 0 ? 0 : inconclusive / schedules;

/** In all worlds together. */
export const sumOf = (all: readonly Doubt[]): Doubt => ({
  inconclusive: all.reduce((sum, { inconclusive }) => sum + inconclusive, 0),
  schedules: all.reduce((sum, { schedules }) => sum + schedules, 0),
});

/** What a failure is about: an order of steps, an effect by itself, or that the same order comes to different things. */
export function aboutOf(violation: Pick<Violation, 'what'>): 'order' | 'keys' | 'chance' {
  if (isAboutKeys(violation)) return 'keys';
  return violation.what === notDeterministic ? 'chance' : 'order';
}

/** `worker_a` of `worker_a~2`, which was started in its place. */
export const firstName = (step: string): string => step.split('~', 1)[0] ?? step;

/** `worker_a~2` after `worker_a`. */
export const nextLife = (step: string): string =>
  `${firstName(step)}~${Number(step.split('~')[1] ?? '1') + 1}`;
