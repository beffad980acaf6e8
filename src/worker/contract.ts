import type { ErrorData, Json } from '../core/index.ts';
import type { Environment } from '../engine/index.ts';
import type { RepositoryOnce } from '../engine/step/index.ts';
import type { Branches } from '../git/index.ts';
import type { ClaimState, WorkerRecord } from '../store/index.ts';
import type { Scope, SpendingLimit } from '../workflow/index.ts';
import type { TaskSource, WorkerSettings } from '../workflow/yaml/index.ts';
import type { Purse } from './budget.ts';
import type { WorkerEffects } from './effects/effects.ts';
import type { Task, TaskProblem } from './tasks/task.ts';
import type { WakeReason, WakeSnapshot } from './wake.ts';

/** Current activity of a worker. */
export type WorkerActivity = Pick<WorkerRecord, 'state' | 'task' | 'agent' | 'runId' | 'note'>;

/** A worker as its steps see it. */
export interface WorkerHandle {
  readonly effects: WorkerEffects;
  readonly rules: WorkerRules;
  /** Whether a step may wait for a person: only a worker that runs until it is stopped does. */
  readonly canWait: boolean;
  /** Publishes the current activity. */
  show(doing: WorkerActivity): Promise<void>;
}

/** Dependencies of the worker effects. */
export interface WorkerContext {
  readonly environment: Environment;
  readonly rules: WorkerRules;
  readonly repository: RepositoryOnce;
  readonly branches: Branches;
  /** Limits that the workers of the process share. */
  readonly purse: Purse;
}

/** Reason why a worker ended. */
export type EndReason =
  | 'stopped'
  | 'idle'
  | 'once'
  | 'run'
  | 'nothing-to-do'
  | 'max-tasks'
  | 'budget'
  | 'stalled';

/** News of a worker, in addition to the events of its runs. */
export type WorkerNews =
  | { readonly kind: 'enlisted'; readonly name: string }
  | { readonly kind: 'problems'; readonly problems: readonly TaskProblem[] }
  | { readonly kind: 'takes-over'; readonly runId: string }
  /** A person must answer before the run continues. The worker continues with other tasks. */
  | {
      readonly kind: 'waits';
      readonly runId: string;
      readonly task: string | undefined;
      readonly why: string;
    }
  /** The history of a run cannot be read, so the run was marked as failed and its task is free. */
  | { readonly kind: 'unreadable'; readonly runId: string; readonly why: string }
  /** Another worker owns the run now. */
  | { readonly kind: 'lost'; readonly runId: string | undefined }
  | { readonly kind: 'nothing'; readonly why: string }
  | { readonly kind: 'sleeps'; readonly why: string }
  | { readonly kind: 'woke'; readonly what: WakeReason }
  | {
      readonly kind: 'abandoned';
      readonly task: string;
      readonly state: ClaimState;
      readonly reason: string;
      /** Branch with the unfinished work, if there is any. */
      readonly branch?: string | undefined;
      readonly hint?: string | undefined;
    }
  /** The run was stopped and keeps its task. The next worker continues it, unless the task has used up its own budget. */
  | {
      readonly kind: 'suspended';
      readonly task: string | undefined;
      readonly runId: string;
      readonly reason: string;
      readonly hint?: string | undefined;
    }
  /** A workspace or branch could not be removed; `reprise gc` removes it later. */
  | { readonly kind: 'leftover'; readonly what: string; readonly why: string }
  | { readonly kind: 'ended'; readonly reason: EndReason };

/** Outcome of one run of a worker. */
export interface TaskEnd {
  /** Id of the task; `undefined` if the run ended before it had one. */
  readonly task: string | undefined;
  readonly runId: string;
  /** Error that kept the task from landing. */
  readonly error: ErrorData | undefined;
  /** Whether the task waits for a person. */
  readonly isWaiting?: boolean | undefined;
}

export interface WorkerEnd {
  readonly reason: EndReason;
  readonly tasks: readonly TaskEnd[];
  /** Whether a task that was read last can never be done as it is written. */
  readonly hasImpossibleTask: boolean;
}

export const firstLineOf = (text: string): string => text.split('\n', 1)[0] ?? '';

/** Settings of workers, with every default that depends on the repository resolved. */
export interface WorkerRules extends WorkerSettings {
  /** Branch that tasks are read from and landed on. */
  readonly branch: string;
  readonly tasks: TaskSource;
  /** Spending limit of a single task. */
  readonly taskBudget?: SpendingLimit | undefined;
}

/** Name of the workflow whose runs are the iterations of workers. */
export const workerWorkflow = 'worker';

/** Source recorded with every such run, by which its definition is found. */
export const workerSource = 'reprise:worker';

/** Name of the agent whose concurrency slots double as the dispatch lock. */
export const dispatcher = 'dispatch';

/** Branch of finished work that is to be landed outside of Reprise. */
export const taskBranch = (task: string): string => `reprise/task/${task}`;

/** Branch of work that did not land. */
export const parkedBranchOf = (task: string): string => `reprise/parked/${task}`;

/** Note of a worker that waits for the dispatch lock. */
export const waitsToDispatch = 'waiting for its turn to dispatch';

/** Output of the dispatch step. */
export type Dispatch =
  | {
      readonly task: DispatchedTask;
      readonly agent: string;
      readonly args: Readonly<Record<string, string>>;
      /** Reason for the choice, shown to people. */
      readonly why: string;
      /** Token of the claim. */
      readonly token: number;
    }
  | { readonly task: null; readonly why: string; readonly seen: WakeSnapshot };

export type DispatchedTask = Pick<Task, 'id' | 'title' | 'body' | 'file' | 'version'>;

/** Input of an iteration. */
interface IterationInput {
  /** Name of the worker. */
  readonly worker: string;
  readonly incarnation: string;
}

export const inputOf = ({ inputs }: Scope): IterationInput => inputs as unknown as IterationInput;

export const dispatchOf = ({ steps }: Scope): Dispatch | undefined =>
  steps['dispatch']?.outputs as unknown as Dispatch | undefined;

/** Output of the dispatch step. Throws if no task was dispatched. */
export function dispatchedOf(scope: Scope): Extract<Dispatch, { agent: string }> {
  const dispatch = dispatchOf(scope);
  if (dispatch && dispatch.task !== null) return dispatch;
  throw new TypeError('no task was dispatched');
}

export const toOutput = (dispatch: Dispatch): Json => JSON.parse(JSON.stringify(dispatch)) as Json;
