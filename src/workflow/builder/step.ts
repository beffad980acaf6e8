import type { FunctionBody, Scope, StepContext } from '../model.ts';
import { buildStep, optionReader, type WorkOptions } from './build.ts';
import { type AnyFanOut, checkFanOut, describeFanOut, type FanOutOptions, fanOutReader } from './fan-out.ts';
import {
  type After,
  type DeepReadonly,
  type Dependency,
  type FannedOut,
  type ItemSelect,
  type Outputs,
  outputParser,
  readOutputs,
  type Schema,
  type StepHandle,
  type Stored,
  toItemSelector,
} from './handle.ts';
import { isWorkflow, type Workflow } from './workflow.ts';

/** Additional context of a copy, if the step has a matrix. */
type ItemContext<Item> = [Item] extends [never]
  ? unknown
  : {
      /** Index of this copy, counted from 0. */
      readonly worker: number;
      readonly matrix: Item;
    };

export interface FunctionStepOptions<
  A extends After,
  Input,
  Returned,
  Copies extends number = 1,
  Item extends object = never,
> extends WorkOptions<A, Input>,
    FanOutOptions<A, Input, Copies, Item> {
  /** Function that receives the outputs of `after` under the same names. Its result is stored as JSON. */
  readonly run: (outputs: Outputs<A>, ctx: StepContext<Input> & ItemContext<Item>) => Returned;
  readonly output?: undefined;
  readonly uses?: undefined;
}

interface CheckedStepOptions<
  A extends After,
  Input,
  Returned,
  Unparsed,
  Parsed,
  Copies extends number,
  Item extends object,
> extends WorkOptions<A, Input>,
    FanOutOptions<A, Input, Copies, Item> {
  /** Function that receives the outputs of `after` under the same names. Its result must match `output`. */
  readonly run: (outputs: Outputs<A>, ctx: StepContext<Input> & ItemContext<Item>) => Returned;
  /** Schema that validates the result of `run`. Later steps read the parsed value. */
  readonly output: Schema<Parsed, Unparsed>;
  readonly uses?: undefined;
}

/** Possible results of the function of a step with an output schema. */
type Checked<Unparsed> = DeepReadonly<Unparsed> | PromiseLike<DeepReadonly<Unparsed>>;

/**
 * Defines a step that runs a function. Never throws: `workflow` reports its problems.
 *
 * `CheckedReturn` is a const parameter separate from `Returned`, so that literals keep their types only if there is an
 * output schema.
 */
export function step<
  Returned,
  const CheckedReturn extends Checked<Unparsed>,
  A extends After = Record<never, never>,
  Input = unknown,
  Unparsed = never,
  Parsed = never,
  Copies extends number = 1,
  Item extends object = never,
>(
  id: string,
  options:
    | FunctionStepOptions<A, Input, Returned, Copies, Item>
    | CheckedStepOptions<A, Input, CheckedReturn, Unparsed, Parsed, Copies, Item>,
): StepHandle<FannedOut<Copies, Item, Stored<[Parsed] extends [never] ? Awaited<Returned> : Parsed>>, Input>;
/** Defines a step that runs another workflow. `with` provides its input. */
export function step<
  ChildInput,
  Output,
  A extends After = Record<never, never>,
  Input = unknown,
  Copies extends number = 1,
  Item extends object = never,
>(
  id: string,
  options: ChildStepOptions<A, Input, ChildInput, Output, Copies, Item>,
): StepHandle<FannedOut<Copies, Item, Output>, Input>;
export function step<A extends After, Input, ChildInput, Item extends object>(
  id: string,
  options: AnyFunctionStep<A, Input, Item> | ChildStepOptions<A, Input, ChildInput, unknown, number, Item>,
): StepHandle<unknown, Input> {
  return options.uses ? childStep(id, options) : functionStep(id, options);
}

type AnyFunctionStep<A extends After, Input, Item extends object> =
  | FunctionStepOptions<A, Input, unknown, number, Item>
  | CheckedStepOptions<A, Input, unknown, unknown, unknown, number, Item>;

function functionStep<A extends After, Input, Item extends object>(
  id: string,
  options: AnyFunctionStep<A, Input, Item>,
): StepHandle<unknown, Input> {
  const { run } = options;
  const reader = optionReader(id);
  if (typeof run !== 'function') {
    reader.problem(
      'it has neither a `run` function nor a workflow in `uses`',
      '`uses` may be undefined because two modules import each other',
    );
  }
  checkFanOut(options, reader);
  return buildStep({
    id,
    options,
    reader,
    fanOut: fanOutReader(id, options),
    body: bodyOf,
    describe: describeFunction,
  });
}

const bodyOf = (dependencies: readonly Dependency[], options: AnyRun): FunctionBody =>
  new DefinedFunction(options, dependencies);

const describeFunction = (options: AnyRun): string => String(options.run) + describeFanOut(options);

/** Options of a function step with any dependencies. */
interface AnyRun extends AnyFanOut {
  readonly run: (outputs: never, ctx: never) => unknown;
  readonly output?: Schema | undefined;
}

/** A class, because a workflow may have many steps and closures would take four times the memory. */
class DefinedFunction implements FunctionBody {
  readonly kind = 'function';
  readonly parseOutput: FunctionBody['parseOutput'];
  readonly #run: AnyRun['run'];
  readonly #dependencies: readonly Dependency[];

  constructor({ run, output }: AnyRun, dependencies: readonly Dependency[]) {
    this.parseOutput = outputParser(output);
    this.#run = run;
    this.#dependencies = dependencies;
  }

  /** The casts are safe, because `workflow` has validated the graph. */
  run(scope: Scope, ctx: StepContext): unknown {
    const run = this.#run;
    return run(readOutputs(this.#dependencies, scope) as never, ctx as never);
  }
}

type ChildStepOptions<
  A extends After,
  Input,
  ChildInput,
  Output,
  Copies extends number = 1,
  Item extends object = never,
> = WorkOptions<A, Input> &
  FanOutOptions<A, Input, Copies, Item> & {
    readonly uses: Workflow<ChildInput, Output>;
    readonly run?: undefined;
  } & WithInput<A, Input, ChildInput, Item>;

/** `with` is required exactly when the child declares an input. */
type WithInput<A extends After, Input, ChildInput, Item> = [ChildInput] extends [undefined]
  ? { readonly with?: undefined }
  : {
      /** Pure function that returns the input of the child, which the child's own schema then validates. */
      readonly with: ItemSelect<A, Input, Item, NoInfer<ChildInput>>;
    };

function childStep<A extends After, Input, ChildInput, Output, Item extends object>(
  id: string,
  options: ChildStepOptions<A, Input, ChildInput, Output, number, Item>,
): StepHandle<unknown, Input> {
  const {
    uses,
    with: select,
  }: {
    uses: Workflow<ChildInput, Output>;
    with?: ItemSelect<A, Input, Item, unknown> | undefined;
  } = options;
  const reader = optionReader(id);
  if (!isWorkflow(uses)) reader.problem('`uses` is not a workflow', 'pass the result of workflow()');
  checkFanOut(options, reader);
  return buildStep({
    id,
    options,
    reader,
    fanOut: fanOutReader(id, options),
    body: dependencies => ({
      kind: 'uses',
      workflow: uses.model,
      input: select ? toItemSelector(dependencies, select) : () => ({}),
    }),
    // Leaves out the steps of the child, which have their own fingerprints. A changed step then reruns alone.
    describe: () =>
      JSON.stringify([uses.model.name, uses.model.onFailure, select ? String(select) : null]) +
      describeFanOut(options),
  });
}
