export { type AgentPermissions, type AgentStepOptions, type AgentText, agent } from './agent.ts';
export { type Approval, type ApproveOptions, approve } from './approve.ts';
export type { JudgeOptions, SelectOptions } from './fan-out.ts';
export {
  type After,
  type Maybe,
  maybe,
  type OutputOf,
  type Outputs,
  type StepHandle,
} from './handle.ts';
export { type Landed, type LandStepOptions, land } from './land.ts';
export type { Budget, Retry, Timeout } from './rules.ts';
export type { Schema } from './schema.ts';
export { type ShellStepOptions, shell } from './shell.ts';
export { type FunctionStepOptions, step } from './step.ts';
export type { WorkspaceSettings } from './work.ts';
export type { WorkerResult, WorkerResults } from './worker-results.ts';
export { type WorkflowOptions, workflow } from './workflow.ts';
export { isWorkflow, type Workflow, type WorkflowInput, type WorkflowOutput } from './workflow-value.ts';
