export { withState } from './parse.ts';
export { printedBy, readTaskFiles, type TaskFiles, taskBoardOf } from './read.ts';
export { type TaskStatusWord, type TaskWithStatus, taskStatusesOf } from './status.ts';
export type { TaskProblem } from './task.ts';
