import {
  type Coverage,
  type Move,
  notDeterministic,
  type Policy,
  type PolicyName,
  type ScheduleVerdict,
} from '../../effects/explore/index.ts';
import type { FaultKind } from '../manifest/manifest.ts';
import type { Backend } from './backends.ts';
import type { CrashCoverage } from './crash-points.ts';
import type { Crash } from './crashes.ts';
import type { Fault } from './faults.ts';
import { isAboutKeys } from './key-check/check.ts';
import type { OutcomeForms } from './outcomes.ts';
import type { PerformedCase } from './perform.ts';

/** A broken rule. */
export interface Violation {
  /** Name of the rule. Failures of two schedules with the same name count as the same failure. */
  readonly what: string;
  /** Sentence for people. */
  readonly message: string;
}

export interface CaseExploreOptions {
  readonly policy: PolicyName;
  readonly forMs: number;
  /** Maximum number of schedules. */
  readonly schedules: number;
  readonly seed: number;
  readonly crashes: boolean;
  /**
   * Whether the crashes of the recorded schedule come before all other schedules, or are the only ones. By default, they
   * alternate with other schedules.
   */
  readonly crashPoints?: 'first' | 'only' | undefined;
  readonly faults: readonly FaultKind[];
  /** Checks that effects only change what their keys declare as written. */
  readonly checkKeys?: boolean | undefined;
  /** Plays every schedule twice and fails if the outcomes differ. */
  readonly twice?: boolean | undefined;
  /** Backend to use. Defaults to both in turn. */
  readonly on?: 'memory' | 'git' | undefined;
  readonly onProgress?: ((progress: ExplorationProgress) => void) | undefined;
  readonly interrupt?: AbortSignal | undefined;
}

export interface ExplorationProgress extends Coverage {
  readonly on: Backend['kind'];
  readonly schedules: number;
  readonly entries: number;
  readonly elapsedMs: number;
  /** Coverage of crash points, if crashes are tried. */
  readonly crashPoints?: CrashCoverage | undefined;
}

/** Reason why exploration stopped. */
export type EndedBy = 'failure' | 'interrupt' | 'schedules' | 'time';

/** Result of exploring a case on one backend. */
export interface Exploration extends ExplorationProgress {
  /** Whether every order of conflicting effects was played, with time passing only while all lanes wait. */
  readonly isComplete: boolean;
  /** Groups of commands that differ only in their names. Schedules that only swap them are not played. */
  readonly alike: readonly (readonly string[])[];
  /** Number of schedules without a verdict, because no recorded session fits the prompt or base there. */
  readonly inconclusive: number;
  /** Why the first inconclusive schedule has no verdict. */
  readonly doubt?: string | undefined;
  /** Number of schedules in which a recorded session was replayed on another base commit or prompt. */
  readonly counterfactual: number;
  /** Whether outcomes were compared with those of sequential schedules. False if one of these did not pass. */
  readonly isComparedWithOrders: boolean;
  /** Set if no more schedules were tried after the crash points, because most of them were inconclusive. */
  readonly givenUp?: InconclusiveCount | undefined;
  /** Limit or event that stopped exploration; unset if there was no schedule left. */
  readonly endedBy?: EndedBy | undefined;
  readonly failure?: Failure | undefined;
}

export interface Failure {
  readonly what: string;
  readonly message: string;
  readonly attempt: Pick<ScheduleAttempt, 'by' | 'seed'>;
  readonly adversity: Faults;
  readonly isCalm: boolean;
  /** Moves up to the failure. The rest of the schedule runs without preemption. */
  readonly trace: readonly Move[];
  /** Moves that lanes wait for, in a deadlock. */
  readonly waits: readonly Move[];
}

export const failureOf = (
  { by, seed, adversity, policy }: ScheduleAttempt,
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

export const waitsOf = (verdict: ScheduleVerdict, left: readonly Move[]): readonly Move[] =>
  verdict.kind === 'failed' && verdict.what === 'deadlock' ? left : [];

/** Crashes and faults injected into a schedule. */
export interface Faults {
  readonly crashes: readonly Crash[];
  readonly faults: readonly Fault[];
}

export const noFaults: Faults = { crashes: [], faults: [] };

/** One schedule to play. */
export interface ScheduleAttempt {
  readonly policy: Policy;
  readonly adversity: Faults;
  /** Name of the policy or source, for people. */
  readonly by: string;
  readonly seed: number;
  /** Outcome of the recorded schedule without a crash, if this is the recorded schedule with one. */
  readonly recorded?: OutcomeForms | undefined;
}

/** A supply of schedules. */
export interface ScheduleSource {
  /** Returns the next schedule; `undefined` if there is none until the running ones have been learned from. */
  next(): ScheduleAttempt | undefined;
  /** Takes the result of a schedule. Results arrive in the order in which `next` returned the schedules. */
  learn(performed: PerformedCase, attempt: ScheduleAttempt): void;
}

/** Number of inconclusive schedules out of all that were played. */
export interface InconclusiveCount {
  readonly inconclusive: number;
  readonly schedules: number;
}

/** Share of inconclusive schedules above which an exploration proves nothing and fails. */
export const mostInconclusive = 0.2;

export const isTooMuch = (count: InconclusiveCount): boolean => shareOf(count) > mostInconclusive;

/** Whether more than half of the schedules are inconclusive. */
export const isMost = (count: InconclusiveCount): boolean => shareOf(count) > 0.5;

export const shareOf = ({ inconclusive, schedules }: InconclusiveCount): number =>
  schedules === 0 ? 0 : inconclusive / schedules;

/** Adds up the counts of several backends. */
export const sumOf = (all: readonly InconclusiveCount[]): InconclusiveCount => ({
  inconclusive: all.reduce((sum, { inconclusive }) => sum + inconclusive, 0),
  schedules: all.reduce((sum, { schedules }) => sum + schedules, 0),
});

/** Cause of a failure: the order of effects, the keys of one effect, or an outcome that is not deterministic. */
export function aboutOf(violation: Pick<Violation, 'what'>): 'order' | 'keys' | 'chance' {
  if (isAboutKeys(violation)) return 'keys';
  return violation.what === notDeterministic ? 'chance' : 'order';
}

/** Name of the command in the case: `worker_a` for `worker_a~2`, which is its first restart. */
export const firstName = (step: string): string => step.split('~', 1)[0] ?? step;

/** Name of the next restart: `worker_a~2` for `worker_a`. */
export const nextLife = (step: string): string =>
  `${firstName(step)}~${Number(step.split('~')[1] ?? '1') + 1}`;
