import { isJsonObject } from '../../core/json.ts';
import type { Body, Need, StepModel } from '../model.ts';
import type { Problem } from '../problems.ts';
import type { WorkPlace } from '../workspace-rules.ts';

declare const types: unique symbol;

// Registered symbols, so that a workflow and its steps may come from two copies of the package.
export const stepKey: unique symbol = Symbol.for('reprise.step');
export const maybeKey: unique symbol = Symbol.for('reprise.maybe');

/**
 * A step that was defined: other steps name it in `after`, and a workflow lists it in `steps`.
 * `Output` is what it gives to steps after it, `Input` what it expects of the run's input.
 */
export interface StepHandle<out Output = unknown, in Input = unknown> {
  readonly id: string;
  readonly [stepKey]: StepDefinition;
  readonly [types]?: ((input: Input) => Output) | undefined;
}

/** A step, whatever it gives and whatever it expects. */
export type AnyStep = StepHandle<unknown, never>;

/** A dependency that may end in any way: its key is `undefined` unless it succeeded. */
export interface Maybe<out Output = unknown> {
  readonly [maybeKey]: StepHandle<Output, never>;
}

/** What stands behind a handle. Problems are kept until `workflow` can report all of them at once. */
export interface StepDefinition {
  readonly model: StepModel & {
    /** The same step with another body: a workflow decides where its workspaces begin. */
    withBody?(body: Body): StepModel;
  };
  readonly place?: WorkPlace | undefined;
  readonly dependencies: readonly Dependency[];
  readonly problems: readonly Problem[];
}

/** A need, and the name by which the step reads it. */
export interface Dependency extends Need {
  readonly alias: string;
  readonly step: AnyStep;
}

/** The dependencies of a step, each under the name by which the step reads it. */
export type After = Readonly<Record<string, AnyStep | Maybe>>;

/** What a step with this handle gives to those after it. */
export type OutputOf<Handle> =
  Handle extends StepHandle<infer Output, never>
    ? Output
    : Handle extends Maybe<infer Output>
      ? Output | undefined
      : never;

/** The outputs of the dependencies under the same names. */
export type Outputs<A extends After> = { readonly [Name in keyof A]: OutputOf<A[Name]> } & {};

/** Lets a step run however the dependency ended; its output is then possibly `undefined`. */
export function maybe<Output>(step: StepHandle<Output, never>): Maybe<Output> {
  return { [maybeKey]: step };
}

export const isStep = (value: unknown): value is AnyStep => isJsonObject(value) && stepKey in value;
export const isMaybe = (value: unknown): value is Maybe => isJsonObject(value) && maybeKey in value;
