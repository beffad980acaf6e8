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

/** What a copy of a step with a matrix is given on top. */
type ItemContext<Item> = [Item] extends [never]
  ? unknown
  : {
      /** From 0. */
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
  /** Gets the outputs of `after` under the same names. What it returns, or resolves to, is stored as JSON. */
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
  /** Gets the outputs of `after` under the same names, and returns what `output` takes. */
  readonly run: (outputs: Outputs<A>, ctx: StepContext<Input> & ItemContext<Item>) => Returned;
  /** Checks what `run` returned; steps after this one get what the schema makes of it. */
  readonly output: Schema<Parsed, Unparsed>;
  readonly uses?: undefined;
}

/** What the function of a step with an output schema may return. */
type Checked<Unparsed> = DeepReadonly<Unparsed> | PromiseLike<DeepReadonly<Unparsed>>;

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
  Copies extends number = 1,
  Item extends object = never,
>(
  id: string,
  options:
    | FunctionStepOptions<A, Input, Returned, Copies, Item>
    | CheckedStepOptions<A, Input, CheckedReturn, Unparsed, Parsed, Copies, Item>,
): StepHandle<FannedOut<Copies, Item, Stored<[Parsed] extends [never] ? Awaited<Returned> : Parsed>>, Input>;
/** A step that runs another workflow; `with` gives it its input. */
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
      '`uses` is undefined too if two modules import each other',
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

/** Whatever the dependencies are. */
interface AnyRun extends AnyFanOut {
  readonly run: (outputs: never, ctx: never) => unknown;
  readonly output?: Schema | undefined;
}

/** A class because there may be many: closures that keep what they need would take four times the room. */
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

  /** The types hold because `workflow` checked the graph. */
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
      /** A pure function: the child's input, before the child's own schema has checked it. */
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
  if (!isWorkflow(uses)) reader.problem('`uses` is not a workflow', 'give it what workflow() returned');
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
    // The child's steps have fingerprints of their own: a change inside runs only what it concerns again.
    describe: () =>
      JSON.stringify([uses.model.name, uses.model.onFailure, select ? String(select) : null]) +
      describeFanOut(options),
  });
}
