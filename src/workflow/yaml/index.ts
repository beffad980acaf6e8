export type { AgentRules, Config } from './config.ts';
export {
  defaultTaskSource,
  defaultWorkerSettings,
  type TaskSource,
  type WorkerSettings,
} from './config-workers.ts';
export type { WorkflowText } from './load.ts';
export { someText } from './schema-work.ts';
