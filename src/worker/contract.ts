import type { ErrorData, Json } from '../core/index.ts';
import type { Environment } from '../engine/index.ts';
import type { RepositoryOnce } from '../engine/step/index.ts';
import type { Branches } from '../git/index.ts';
import type { ClaimState, WorkerRecord } from '../store/index.ts';
import type { Scope } from '../workflow/index.ts';
import type { TaskSource, WorkerSettings } from '../workflow/yaml/index.ts';
import type { WorkerEffects } from './effects/effects.ts';
import type { Task, TaskProblem } from './tasks/task.ts';
import type { WakeReason, WakeSnapshot } from './wake.ts';

/** What a worker does at the moment. */
export type WorkerActivity = Pick<WorkerRecord, 'state' | 'task' | 'agent' | 'runId' | 'note'>;

/** A worker, as the steps of its iterations know it. */
export interface WorkerHandle {
  readonly effects: WorkerEffects;
  readonly rules: WorkerRules;
  /** Whether it may wait for a person: it is to go on until it is told to stop. */
  readonly canWait: boolean;
  /** Tells others what it does now. */
  show(doing: WorkerActivity): Promise<void>;
}

/** What stands behind the effects of workers. */
export interface WorkerContext {
  readonly environment: Environment;
  readonly rules: WorkerRules;
  readonly repository: RepositoryOnce;
  readonly branches: Branches;
}

/** Why a worker came to its end. */
export type EndReason = 'stopped' | 'idle' | 'once' | 'nothing-to-do' | 'max-tasks' | 'budget';

/** What a worker tells of itself, beside what its runs tell. */
export type WorkerNews =
  | { readonly kind: 'enlisted'; readonly name: string }
  | { readonly kind: 'problems'; readonly problems: readonly TaskProblem[] }
  | { readonly kind: 'takes-over'; readonly runId: string }
  /** Somebody else has the run. */
  | { readonly kind: 'lost'; readonly runId: string | undefined }
  | { readonly kind: 'nothing'; readonly why: string }
  | { readonly kind: 'sleeps'; readonly why: string }
  | { readonly kind: 'woke'; readonly what: WakeReason }
  | {
      readonly kind: 'let-go';
      readonly task: string;
      readonly state: ClaimState;
      readonly reason: string;
      /** Where the work is, if there is some. */
      readonly branch?: string | undefined;
      readonly hint?: string | undefined;
    }
  /** Something of it that only whoever cleans up removes. */
  | { readonly kind: 'left'; readonly what: string; readonly why: string }
  | { readonly kind: 'ended'; readonly reason: EndReason };

/** What became of a task that a worker had. */
export interface TaskEnd {
  /** `undefined`: it did not get as far as having one. */
  readonly task: string | undefined;
  readonly runId: string;
  /** Why it did not land. */
  readonly error: ErrorData | undefined;
}

export interface WorkerEnd {
  readonly reason: EndReason;
  readonly tasks: readonly TaskEnd[];
}

export const firstLineOf = (text: string): string => text.split('\n', 1)[0] ?? '';

/** How workers work, with everything that depends on the repository decided. */
export interface WorkerRules extends WorkerSettings {
  /** What is worked on and landed on. */
  readonly branch: string;
  readonly tasks: TaskSource;
}

/** The workflow that every iteration of a worker is a run of. */
export const workerWorkflow = 'worker';

/** Recorded with every run of it, so that its definition is found. */
export const workerSource = 'reprise:worker';

/** Whose places are the lock that dispatching takes. */
export const dispatcher = 'dispatch';

/** Where finished work is left that somebody else is to land. */
export const taskBranch = (task: string): string => `reprise/task/${task}`;

/** Where work is kept that did not land. */
export const parkedBranchOf = (task: string): string => `reprise/parked/${task}`;

/** What a worker says while others dispatch. */
export const waitsToDispatch = 'waits for its turn to dispatch';

/** What the first step of an iteration gives to the others. */
export type Dispatch =
  | {
      readonly task: DispatchedTask;
      readonly agent: string;
      readonly args: Readonly<Record<string, string>>;
      /** For people. */
      readonly why: string;
      /** Of the claim. */
      readonly token: number;
    }
  | { readonly task: null; readonly why: string; readonly seen: WakeSnapshot };

export type DispatchedTask = Pick<Task, 'id' | 'title' | 'body' | 'file' | 'version'>;

/** What an iteration is started with. */
interface IterationInput {
  /** The name of the worker. */
  readonly worker: string;
  readonly incarnation: string;
}

export const inputOf = ({ inputs }: Scope): IterationInput => inputs as unknown as IterationInput;

export const dispatchOf = ({ steps }: Scope): Dispatch | undefined =>
  steps['dispatch']?.outputs as unknown as Dispatch | undefined;

/** Of an iteration that has a task. */
export function dispatchedOf(scope: Scope): Extract<Dispatch, { agent: string }> {
  const dispatch = dispatchOf(scope);
  if (dispatch && dispatch.task !== null) return dispatch;
  throw new TypeError('nothing was dispatched');
}

export const toOutput = (dispatch: Dispatch): Json => JSON.parse(JSON.stringify(dispatch)) as Json;
