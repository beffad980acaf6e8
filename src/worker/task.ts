import type { Problem } from '../workflow/problems.ts';

export const priorities = ['P0', 'P1', 'P2', 'P3'] as const;
export type Priority = (typeof priorities)[number];

export const taskStates = ['draft', 'ready', 'review', 'blocked', 'done'] as const;
export type TaskState = (typeof taskStates)[number];

/** A unit of work, as it is written on the branch that is landed on. */
export interface Task {
  /** The name of its file without `.md`, or what a command called it. */
  readonly id: string;
  readonly title: string;
  /** What is below the front matter. */
  readonly body: string;
  readonly priority: Priority;
  readonly state: TaskState;
  /** Tasks that have to be done before. */
  readonly needs: readonly string[];
  /** Who is to take it. */
  readonly agent?: string | undefined;
  /** Relative to the top of the repository; absent if a command listed it. */
  readonly file?: string | undefined;
  /** A hash of all that was written. */
  readonly version: string;
}

/** Something that is wrong with what is written of a task. */
export interface TaskProblem extends Problem {
  /** The name of the task; absent if what is wrong has none. */
  readonly task?: string | undefined;
}

export interface TaskList {
  /** By name: all that could be understood, also those that wait for what is no task, or for each other. */
  readonly tasks: readonly Task[];
  /** Whatever has a problem here and is not among the tasks is never dispatched. */
  readonly problems: readonly TaskProblem[];
}
