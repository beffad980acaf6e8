export { type Approval, type ApproveOptions, approve } from './approve.ts';
export {
  type After,
  type Maybe,
  maybe,
  type OutputOf,
  type Outputs,
  type StepHandle,
} from './handle.ts';
export type { Retry, Timeout } from './rules.ts';
export type { Schema } from './schema.ts';
export { type ShellStepOptions, shell } from './shell.ts';
export { type FunctionStepOptions, step } from './step.ts';
export { type WorkflowOptions, workflow } from './workflow.ts';
export { isWorkflow, type Workflow, type WorkflowInput, type WorkflowOutput } from './workflow-value.ts';
