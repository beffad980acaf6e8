import type { Usage } from '../../agents/session.ts';
import type { ErrorData } from '../../core/errors.ts';
import type { EventOf, NewEvent } from '../../core/events.ts';
import type { Json } from '../../core/json.ts';
import type { Unit } from '../../git/orders.ts';
import type { Lease } from '../../store/port.ts';
import type { Scope, SelectRule, SpendingLimit, StepModel } from '../../workflow/model.ts';
import type { StepEnd } from '../run/messages.ts';
import type { WorkEffects } from './effects.ts';
import type { Done } from './outcome.ts';
import type { Place } from './workspace.ts';

/** One attempt of a step, or of one worker of it, as the lane that does its work sees it. */
export interface WorkLane {
  readonly effects: WorkEffects;
  readonly runId: string;
  readonly workflow: string;
  readonly lease: Lease;
  readonly unit: Unit;
  readonly model: StepModel;
  readonly scope: Scope;
  /** What history knows of the work so far. */
  readonly known: KnownWork;
  /** The commit that the run began with; undefined outside of a repository. */
  readonly base: { readonly ref: string; readonly commit: string } | undefined;
  /** What may still be used up by this attempt: of the step's own budget, or of the run's, whichever is less. */
  readonly left: SpendingLimit;
  /** Where a step that this one comes after left its work. */
  workOf(stepId: string): FinishedWork;
  /** Makes events of this attempt durable before it returns. */
  record(...notes: readonly WorkNote[]): Promise<void>;
  /** Makes an event durable together with the end of the attempt: nothing may happen after it that depends on it. */
  conclude(note: WorkNote): void;
}

/** What a lane may add to the history of its step; the envelope is the engine's. */
export type WorkNote = {
  [E in NewEvent as E['type']]: Pick<E, 'type' | 'data'>;
}[WorkEventType];

export type WorkEventType = Extract<
  NewEvent['type'],
  `${'workspace' | 'session' | 'landing' | 'selection' | 'transition'}.${string}`
>;

export interface KnownWork {
  readonly workspace?: KnownWorkspace | undefined;
  /** The last session of this attempt, if it did not come to an end, or was paused: it is to be resumed. */
  readonly session?: KnownSession | undefined;
  /** How many sessions this attempt has begun. */
  readonly sessions: number;
  /** How often this attempt was landed anew after a session; one that was cut short does not count. */
  readonly reworks: number;
  /** What this attempt began to land before it was interrupted, by branch. */
  readonly landings: ReadonlyMap<string, KnownLanding>;
  /** In this attempt, in order. */
  readonly transitions: readonly Transition[];
  /** Why the last attempt failed. */
  readonly lastError?: ErrorData | undefined;
}

export interface KnownWorkspace {
  /** Relative to the project's root. */
  readonly path: string;
  readonly branch: string;
  readonly base: string;
  readonly commit?: string | undefined;
  readonly ports?: { readonly first: number; readonly size: number } | undefined;
  /** The attempt that it was last used by. */
  readonly attempt: number;
}

export type Transition = EventOf<'transition.taken'>['data'];

export interface KnownSession {
  readonly agent: string;
  readonly number: number;
  readonly sessionId: string;
  /** What it has used up so far: agents that are resumed count on from there. */
  readonly usage?: Usage | undefined;
}

/** `undefined`: nobody knows how it ended. */
export type KnownLanding = EventOf<'landing.ended'>['data'] | undefined;

export interface FinishedWork {
  readonly branch?: string | undefined;
  readonly commit?: string | undefined;
  /** The commit that it began with. */
  readonly base?: string | undefined;
  /** Relative to the project's root. */
  readonly workspace?: string | undefined;
  /** The last conversation that was held for it. */
  readonly session?: KnownSession | undefined;
  /** Of a fan-out: those that succeeded, in order. */
  readonly workers?: readonly FinishedWorker[] | undefined;
}

export interface FinishedWorker {
  readonly worker: number;
  readonly output: Json;
  /** Relative to the project's root. */
  readonly workspace?: string | undefined;
  readonly branch?: string | undefined;
  readonly base?: string | undefined;
  readonly commit?: string | undefined;
}

/** Does the work of a step that has some outside of this process. Only what nobody foresaw is thrown. */
export type DoWork = (lane: WorkLane) => Promise<StepEnd>;

/** Work that the program brings along. */
export type BuiltInWork = (lane: WorkLane, place: Place) => Promise<Done>;

export interface SelectionLane extends Omit<WorkLane, 'known' | 'workOf'> {
  readonly rule: SelectRule;
  /** The workers that succeeded, in order; at least one. */
  readonly candidates: readonly FinishedWorker[];
}

/** Picks a worker; records `selection.made` itself, and ends as completed, or failed if none passes. */
export type Select = (lane: SelectionLane) => Promise<StepEnd>;
