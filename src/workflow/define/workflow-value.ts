import { isJsonObject } from '../../core/json.ts';
import type { WorkflowModel } from '../model.ts';

declare const types: unique symbol;

// A registered symbol, so that a workflow from another copy of the package is one too.
export const workflowKey: unique symbol = Symbol.for('reprise.workflow');

/**
 * A workflow that was checked as a whole: to run it, to use it as a step of another, or to export it from a module.
 * `Input` is what a caller passes (`undefined` when it declares none), `Output` what a completed run gives back.
 */
export interface Workflow<in Input = never, out Output = unknown> {
  readonly name: string;
  readonly model: WorkflowModel;
  readonly [workflowKey]: true;
  readonly [types]?: ((input: Input) => Output) | undefined;
}

/** What a caller passes to a workflow; `undefined` when it declares no input. */
export type WorkflowInput<W extends Workflow> = W extends Workflow<infer Input> ? Input : never;
/** What a completed run of a workflow gives back. */
export type WorkflowOutput<W extends Workflow> = W extends Workflow<never, infer Output> ? Output : never;

/** Whether it is a workflow, also one that another copy of this package made. */
export const isWorkflow = (value: unknown): value is Workflow => isJsonObject(value) && workflowKey in value;
