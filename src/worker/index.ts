export { isUsedUp, Purse } from './budget.ts';
export {
  dispatcher,
  type EndReason,
  type TaskEnd,
  type WorkerEnd,
  type WorkerNews,
  type WorkerRules,
  waitsToDispatch,
  workerSource,
  workerWorkflow,
} from './contract.ts';
export type { WorkerEffects } from './effects/effects.ts';
export type { Claims } from './effects/tasks.ts';
