import type { TaskSource, WorkerSettings } from '../workflow/yaml/config-workers.ts';

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
