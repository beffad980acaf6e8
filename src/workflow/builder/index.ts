export { type AgentPermissions, type AgentStepOptions, type AgentText, agent } from './agent.ts';
export type { JudgeOptions, SelectOptions } from './fan-out.ts';
export {
  type Approval,
  type ApproveOptions,
  approve,
  type Landed,
  type LandStepOptions,
  land,
} from './gates.ts';
export {
  type After,
  type Maybe,
  maybe,
  type OutputOf,
  type Outputs,
  type Schema,
  type StepHandle,
  type WorkerResult,
  type WorkerResults,
} from './handle.ts';
export type { Budget, Retry, Timeout } from './rules.ts';
export { type ShellStepOptions, shell } from './shell.ts';
export { type FunctionStepOptions, step } from './step.ts';
export type { WorkspaceSettings } from './work.ts';
export {
  isWorkflow,
  type Workflow,
  type WorkflowInput,
  type WorkflowOptions,
  type WorkflowOutput,
  workflow,
} from './workflow.ts';
