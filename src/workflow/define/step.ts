import type { StepContext } from '../model.ts';
import { buildStep, optionReader, type WorkOptions } from './build.ts';
import { type ChildStepOptions, childStep } from './child-step.ts';
import { readOutputs } from './dependencies.ts';
import type { After, Outputs, StepHandle } from './handle.ts';
import { type DeepReadonly, outputParser, type Stored } from './output.ts';
import type { Schema } from './schema.ts';

export interface FunctionStepOptions<A extends After, Input, Returned> extends WorkOptions<A, Input> {
  /** Gets the outputs of `after` under the same names. What it returns, or resolves to, is stored as JSON. */
  readonly run: (outputs: Outputs<A>, ctx: StepContext<Input>) => Returned;
  readonly output?: undefined;
  readonly uses?: undefined;
}

export interface CheckedStepOptions<A extends After, Input, Returned, Unparsed, Parsed>
  extends WorkOptions<A, Input> {
  /** Gets the outputs of `after` under the same names, and returns what `output` takes. */
  readonly run: (outputs: Outputs<A>, ctx: StepContext<Input>) => Returned;
  /** Checks what `run` returned; steps after this one get what the schema makes of it. */
  readonly output: Schema<Parsed, Unparsed>;
  readonly uses?: undefined;
}

/** What the function of a step with an output schema may return. */
export type Checked<Unparsed> = DeepReadonly<Unparsed> | PromiseLike<DeepReadonly<Unparsed>>;

/**
 * A step that is a function. Throws nothing: `workflow` reports what is wrong with it.
 *
 * `CheckedReturn` is a const parameter, and apart from `Returned`, so that literals keep their types where an output
 * schema asks for them, and only there.
 */
export function step<
  Returned,
  const CheckedReturn extends Checked<Unparsed>,
  A extends After = Record<never, never>,
  Input = unknown,
  Unparsed = never,
  Parsed = never,
>(
  id: string,
  options:
    | FunctionStepOptions<A, Input, Returned>
    | CheckedStepOptions<A, Input, CheckedReturn, Unparsed, Parsed>,
): StepHandle<Stored<[Parsed] extends [never] ? Awaited<Returned> : Parsed>, Input>;
/** A step that runs another workflow; `with` gives it its input. */
export function step<ChildInput, Output, A extends After = Record<never, never>, Input = unknown>(
  id: string,
  options: ChildStepOptions<A, Input, ChildInput, Output>,
): StepHandle<Output, Input>;
export function step<A extends After, Input, ChildInput>(
  id: string,
  options:
    | FunctionStepOptions<A, Input, unknown>
    | CheckedStepOptions<A, Input, unknown, unknown, unknown>
    | ChildStepOptions<A, Input, ChildInput, unknown>,
): StepHandle<unknown, Input> {
  return options.uses ? childStep(id, options) : functionStep(id, options);
}

function functionStep<A extends After, Input>(
  id: string,
  options: FunctionStepOptions<A, Input, unknown> | CheckedStepOptions<A, Input, unknown, unknown, unknown>,
): StepHandle<unknown, Input> {
  const { run } = options;
  const reader = optionReader(id);
  if (typeof run !== 'function') {
    reader.problem(
      'it has neither a `run` function nor a workflow in `uses`',
      '`uses` is undefined too if two modules import each other',
    );
  }
  return buildStep({
    id,
    options,
    reader,
    body: dependencies => ({
      kind: 'function',
      run: (scope, ctx) => run(readOutputs(dependencies, scope) as Outputs<A>, ctx as StepContext<Input>),
      parseOutput: outputParser(options.output),
    }),
    describe: () => [String(run)],
  });
}
