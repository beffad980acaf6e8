export {
  type AbandonedRun,
  changeMark,
  describeStatus,
  describeTask,
  type LaneFact,
  type LockFact,
  type StatusFacts,
  type TaskFacts,
  type UncommittedTask,
  type WorkerFact,
} from './facts.ts';
export { formatTask, formatTaskList, uncommittedTexts } from './tasks.ts';
export { fittingLines, statusLines } from './text.ts';
