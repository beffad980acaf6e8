export { type Approval, type ApproveOptions, approve } from './approve.ts';
export type { StepOptions, WorkOptions } from './build.ts';
export type { ChildStepOptions } from './child-step.ts';
export type { Select } from './dependencies.ts';
export {
  type After,
  type AnyStep,
  type Maybe,
  maybe,
  type OutputOf,
  type Outputs,
  type StepHandle,
} from './handle.ts';
export type { BackoffOptions, Retry, RetryOptions, Timeout, TimeoutOptions } from './rules.ts';
export type { Schema } from './schema.ts';
export { type Environment, type ShellStepOptions, shell } from './shell.ts';
export { type CheckedStepOptions, type FunctionStepOptions, step } from './step.ts';
export { type WorkflowOptions, workflow } from './workflow.ts';
export { isWorkflow, type Workflow, type WorkflowInput, type WorkflowOutput } from './workflow-value.ts';
