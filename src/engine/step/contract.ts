import type { Usage } from '../../agents/index.ts';
import type { ErrorData, EventOf, Json, NewEvent } from '../../core/index.ts';
import type { WorkUnit } from '../../git/index.ts';
import type { Lease } from '../../store/index.ts';
import type { Scope, SelectRule, SpendingLimit, StepModel } from '../../workflow/index.ts';
import type { StepEnd } from '../run/messages.ts';
import type { WorkEffects } from './effects.ts';
import type { WorkOutcome } from './outcome.ts';
import type { WorkLocation } from './workspace.ts';

/** An attempt of a step, or of a copy of a step, as seen by the lane that performs it. */
export interface WorkLane {
  readonly effects: WorkEffects;
  readonly runId: string;
  readonly workflow: string;
  readonly lease: Lease;
  readonly unit: WorkUnit;
  readonly model: StepModel;
  readonly scope: Scope;
  /** Facts about the work so far, from the history. */
  readonly known: KnownWork;
  /** Commit that the run started from; `undefined` outside of a repository. */
  readonly base: { readonly ref: string; readonly commit: string } | undefined;
  /** Remaining budget of this attempt: the smaller of the step's and the run's. */
  readonly left: SpendingLimit;
  /** Returns the finished work of a step that this one depends on. */
  workOf(stepId: string): FinishedWork;
  /** Makes events of this attempt durable. Resolves when they are. */
  record(...notes: readonly WorkNote[]): Promise<void>;
  /** Makes an event durable together with the end of the attempt. Until then, nothing may rely on the event. */
  conclude(note: WorkNote): void;
}

/** An event that a lane may add to the history of its step, without the envelope. */
export type WorkNote = {
  [E in NewEvent as E['type']]: Pick<E, 'type' | 'data'>;
}[WorkEventType];

export type WorkEventType = Extract<
  NewEvent['type'],
  `${'workspace' | 'session' | 'work' | 'landing' | 'selection' | 'transition'}.${string}`
>;

export interface KnownWork {
  readonly workspace?: KnownWorkspace | undefined;
  /** Session to resume: the last one of this attempt, if it was interrupted or paused. */
  readonly session?: KnownSession | undefined;
  /** Result of the last session, if a crash kept the step from using it. */
  readonly answer?: KnownAnswer | undefined;
  /** Number of sessions with a result in this attempt, since its last transition. */
  readonly answers: number;
  /** Number of sessions that this attempt has started. */
  readonly sessions: number;
  /** Number of times this attempt landed again after a session. An interrupted session does not count. */
  readonly reworks: number;
  /** Landings that this attempt started before it was interrupted, by branch. */
  readonly landings: ReadonlyMap<string, KnownLanding>;
  /** Delivery of this attempt, if it ended before an interruption. */
  readonly delivered?: EventOf<'landing.delivered'>['data'] | undefined;
  /** Transitions of this attempt, in order. */
  readonly transitions: readonly Transition[];
  /** Error of the last attempt. */
  readonly lastError?: ErrorData | undefined;
  /** Last approval that this attempt asked for, with its answer. */
  readonly approval?:
    | (EventOf<'approval.requested'>['data'] & {
        readonly given?: EventOf<'approval.given'>['data'] | undefined;
      })
    | undefined;
}

export interface KnownWorkspace {
  /** Path relative to the root of the project. */
  readonly path: string;
  readonly branch: string;
  readonly base: string;
  readonly commit?: string | undefined;
  readonly ports?: { readonly first: number; readonly size: number } | undefined;
  /** Number of the attempt that last used the workspace. */
  readonly attempt: number;
}

export type Transition = EventOf<'transition.taken'>['data'];

export interface KnownSession {
  readonly agent: string;
  readonly number: number;
  readonly sessionId: string;
  /** Usage so far. A resumed agent continues to count from there. */
  readonly usage?: Usage | undefined;
}

/** Result of a session that history contains. */
export interface KnownAnswer extends Pick<EventOf<'session.ended'>['data'], 'answer' | 'error' | 'denials'> {
  readonly agent: string;
  readonly sessionId: string | undefined;
  /** Usage of the session, including its earlier parts. */
  readonly usage: Usage;
}

/** The end of a landing; `undefined` if it is unknown. */
export type KnownLanding = EventOf<'landing.ended'>['data'] | undefined;

export interface FinishedWork {
  readonly branch?: string | undefined;
  readonly commit?: string | undefined;
  /** Commit that the work started from. */
  readonly base?: string | undefined;
  /** Path relative to the root of the project. */
  readonly workspace?: string | undefined;
  /** Last session of the step. */
  readonly session?: KnownSession | undefined;
  /** Copies of a fan-out that succeeded, in order. */
  readonly workers?: readonly FinishedWorker[] | undefined;
}

export interface FinishedWorker {
  readonly worker: number;
  readonly output: Json;
  /** Path relative to the root of the project. */
  readonly workspace?: string | undefined;
  readonly branch?: string | undefined;
  readonly base?: string | undefined;
  readonly commit?: string | undefined;
}

/** Performs the work of a step that acts outside of this process. Throws only unexpected errors. */
export type DoWork = (lane: WorkLane) => Promise<StepEnd>;

/** Work that is part of Reprise itself. */
export type BuiltInWork = (lane: WorkLane, location: WorkLocation) => Promise<WorkOutcome>;

export interface SelectionLane extends Omit<WorkLane, 'workOf'> {
  readonly rule: SelectRule;
  /** Copies that succeeded, in order; at least one. */
  readonly candidates: readonly FinishedWorker[];
}

/** Selects a copy and records `selection.made`. The end is completed, or failed if no copy passes. */
export type RunSelection = (lane: SelectionLane) => Promise<StepEnd>;
