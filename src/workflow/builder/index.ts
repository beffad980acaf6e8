export { type Approval, type ApproveOptions, approve } from '../define/approve.ts';
export {
  type After,
  type Maybe,
  maybe,
  type OutputOf,
  type Outputs,
  type StepHandle,
} from '../define/handle.ts';
export type { Schema } from '../define/schema.ts';
export type { WorkerResult, WorkerResults } from '../define/worker-results.ts';
export {
  isWorkflow,
  type Workflow,
  type WorkflowInput,
  type WorkflowOutput,
} from '../define/workflow-value.ts';
export { type AgentPermissions, type AgentStepOptions, type AgentText, agent } from './agent.ts';
export type { JudgeOptions, SelectOptions } from './fan-out.ts';
export { type Landed, type LandStepOptions, land } from './gates.ts';
export type { Budget, Retry, Timeout } from './rules.ts';
export { type ShellStepOptions, shell } from './shell.ts';
export { type FunctionStepOptions, step } from './step.ts';
export type { WorkspaceSettings } from './work.ts';
export { type WorkflowOptions, workflow } from './workflow.ts';
