import { type ErrorData, isJsonObject, type Json, RepriseError, toErrorData } from '../../core/index.ts';
import { type Body, type Need, ownScope, type Scope, type Selector, type StepModel } from '../model.ts';
import type { Problem } from '../problems.ts';
import type { WorkPlace } from '../workspace-rules.ts';
import type { OptionReader } from './rules.ts';

/** Result of one copy of a step. */
export interface WorkerResult<Output> {
  /** Index of the copy, counted from 0. */
  readonly index: number;
  readonly status: 'completed' | 'failed' | 'cancelled';
  /** Output of the copy, if it completed. */
  readonly output?: Output;
  /** Error of the copy, if it failed. */
  readonly error?: ErrorData;
  readonly workspace: string | null;
  readonly branch: string | null;
  /** Cost in US dollars, or `null` if it is unknown. */
  readonly cost: number | null;
  readonly duration_ms: number;
}

/** Output of a step with `concurrency` or `matrix`: the results of all copies in order, no matter how they ended. */
export interface WorkerResults<Output> {
  readonly worker_results: readonly WorkerResult<Output>[];
  readonly total_workers: number;
  readonly success_count: number;
  readonly fail_count: number;
  readonly cancelled_count: number;
  /** Index of the copy that `select` picked. */
  readonly selected?: number;
}

/** Output of a step that may fan out. `concurrency` of 0 or 1 means no fan-out. */
export type FannedOut<Copies extends number, Item, Output> = [Item] extends [never]
  ? number extends Copies
    ? Output | WorkerResults<Output>
    : Copies extends 0 | 1
      ? Output
      : WorkerResults<Output>
  : WorkerResults<Output>;

declare const types: unique symbol;

// Registered symbols, so that a workflow and its steps may come from different copies of the package.
export const stepKey: unique symbol = Symbol.for('reprise.step');
export const maybeKey: unique symbol = Symbol.for('reprise.maybe');

/**
 * A defined step. Other steps name it in `after`, and a workflow lists it in `steps`.
 * `Output` is the type that later steps read, `Input` the type that it expects of the run's input.
 */
export interface StepHandle<out Output = unknown, in Input = unknown> {
  readonly id: string;
  readonly [stepKey]: StepBlueprint;
  readonly [types]?: ((input: Input) => Output) | undefined;
}

/** A step with any output and any input. */
export type AnyStep = StepHandle<unknown, never>;

/** A dependency that does not have to succeed. Its output is `undefined` if it did not. */
export interface Maybe<out Output = unknown> {
  readonly [maybeKey]: StepHandle<Output, never>;
}

/** Content of a handle. Keeps problems until `workflow` reports all of them together. */
export interface StepBlueprint {
  readonly model: StepModel & {
    /** Returns the same step with a different body, once the workflow has resolved the base of its workspace. */
    withBody?(body: Body): StepModel;
  };
  readonly place?: WorkPlace | undefined;
  readonly dependencies: readonly Dependency[];
  readonly problems: readonly Problem[];
}

/** A need and the name under which the step reads it. */
export interface Dependency extends Need {
  readonly alias: string;
  readonly step: AnyStep;
}

/** Dependencies of a step, each under the name by which the step reads its output. */
export type After = Readonly<Record<string, AnyStep | Maybe>>;

/** Type that later steps read from this handle. */
export type OutputOf<Handle> =
  Handle extends StepHandle<infer Output, never>
    ? Output
    : Handle extends Maybe<infer Output>
      ? Output | undefined
      : never;

/** Outputs of the dependencies under the same names. */
export type Outputs<A extends After> = { readonly [Name in keyof A]: OutputOf<A[Name]> } & {};

/** Marks a dependency that does not have to succeed. Its output may then be `undefined`. */
export function maybe<Output>(step: StepHandle<Output, never>): Maybe<Output> {
  return { [maybeKey]: step };
}

export const isStep = (value: unknown): value is AnyStep => isJsonObject(value) && stepKey in value;
export const isMaybe = (value: unknown): value is Maybe => isJsonObject(value) && maybeKey in value;

/** A pure function of the values that a step may read. */
export type Select<A extends After, Input, T> = (outputs: Outputs<A>, input: Input) => T;

/** Like `Select`, for one copy of a step. `item` contains its matrix values, if the step has a matrix. */
export type ItemSelect<A extends After, Input, Item, T> = (
  outputs: Outputs<A>,
  input: Input,
  item: Item,
) => T;

const none: readonly never[] = [];

/** Reads `after`, or the `output` of a workflow. `option` is its name in messages. */
export function readDependencies(
  after: After | undefined,
  { reader, option }: { readonly reader: OptionReader; readonly option: string },
): readonly Dependency[] {
  if (!after) return none;
  let dependencies: readonly Dependency[] = none;
  for (const alias of Object.keys(after)) {
    const value: unknown = after[alias];
    const tolerant = isMaybe(value);
    const step = tolerant ? value[maybeKey] : value;
    if (!isStep(step)) reader.problem(`${option}.${alias} is not a step`, notAStepHint(value));
    else dependencies = withOneMore(dependencies, new DefinedDependency(alias, step, tolerant));
  }
  return dependencies;
}

/** One object for need and dependency, because there may be many. Private fields keep handles out of the model. */
class DefinedDependency implements Dependency {
  declare readonly id: string;
  declare readonly tolerant: boolean;
  readonly #alias: string;
  readonly #step: AnyStep;

  constructor(alias: string, step: AnyStep, tolerant: boolean) {
    this.id = step.id;
    this.tolerant = tolerant;
    this.#alias = alias;
    this.#step = step;
  }

  get alias(): string {
    return this.#alias;
  }

  get step(): AnyStep {
    return this.#step;
  }
}

/** Avoids `push` for short lists: V8 then reserves room for 17 more items, but most lists have one or two. */
function withOneMore(list: readonly Dependency[], item: Dependency): readonly Dependency[] {
  if (list.length === 0) return [item];
  if (list.length < 3) return list.concat(item);
  (list as Dependency[]).push(item);
  return list;
}

const notAStepHint = (value: unknown): string =>
  value === undefined
    ? 'it is undefined: define the step above this one, and check for modules that import each other'
    : 'pass the result of step(), shell(), agent(), approve() or land()';

/** Merges dependencies on the same step. The step must succeed unless all of them are `maybe`. */
export function needsOf(dependencies: readonly Dependency[]): readonly Need[] {
  if (dependencies.length < 2) return dependencies;
  const tolerances = new Map<string, boolean>();
  for (const { id, tolerant } of dependencies) {
    tolerances.set(id, tolerant && (tolerances.get(id) ?? true));
  }
  if (tolerances.size === dependencies.length) return dependencies;
  return Array.from(tolerances, ([id, tolerant]) => ({ id, tolerant }));
}

/** Returns the outputs of the dependencies under the names that the step uses. */
export function readOutputs(
  dependencies: readonly Dependency[],
  scope: Scope,
): Record<string, Json | undefined> {
  return Object.fromEntries(dependencies.map(({ alias, step }) => [alias, scope.steps[step.id]?.outputs]));
}

/** Turns a function of outputs and input into a selector. The casts are safe: `workflow` validates the graph. */
export function toSelector<A extends After, Input, T>(
  dependencies: readonly Dependency[],
  select: Select<A, Input, T>,
): Selector<T> {
  return shared => {
    const scope = ownScope(shared);
    return select(readOutputs(dependencies, scope) as Outputs<A>, scope.inputs as Input);
  };
}

/** Like `toSelector`, for one copy of a step. Also accepts a plain value. */
export function toItemSelector<A extends After, Input, Item, T>(
  dependencies: readonly Dependency[],
  given: T | ItemSelect<A, Input, Item, T>,
): Selector<T> {
  if (!isFunction(given)) return () => given;
  return shared => {
    const scope = ownScope(shared);
    return given(
      readOutputs(dependencies, scope) as Outputs<A>,
      scope.inputs as Input,
      (scope.matrix ?? {}) as Item,
    );
  };
}

const isFunction = <T, F extends (...args: never) => T>(value: T | F): value is F =>
  typeof value === 'function';

type Nothing = ReturnType<() => void>;

/** Type of an output after it was stored: `undefined` becomes `null`. */
export type Stored<T> = T extends Nothing ? null : T;

type Primitive = string | number | bigint | boolean | symbol | null | undefined;

/** Read-only version of a type, so that values inferred as constants match too. */
export type DeepReadonly<T> = unknown extends T
  ? T
  : T extends Primitive | ((...args: never) => unknown)
    ? T
    : T extends readonly (infer Item)[]
      ? number extends T['length']
        ? ReadonlyList<Item>
        : { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
      : { readonly [Key in keyof T]: DeepReadonly<T[Key]> };

/** An interface, because it is resolved lazily. A type alias for all JSON would recurse forever. */
interface ReadonlyList<Item> extends ReadonlyArray<DeepReadonly<Item>> {}

/** Returns a function that validates an output. It throws OUTPUT_INVALID with every issue in one line. */
export function outputParser(schema: Schema | undefined): ((output: unknown) => unknown) | undefined {
  if (!schema) return undefined;
  return output => {
    const outcome = parseWith({ schema, value: output, root: 'output' });
    if (outcome.kind === 'parsed') return outcome.value;
    throw new RepriseError('OUTPUT_INVALID', outcome.issues.join('; '), { cause: outcome.cause });
  };
}

/**
 * The part of a schema that Reprise uses. Every zod 4 schema has it, whichever copy or flavor of zod created it.
 * Declared here so that importing the API does not load zod.
 */
export interface Schema<Output = unknown, Input = unknown> {
  readonly _zod: { readonly output: Output; readonly input: Input };
  safeParse(value: unknown): SchemaResult<Output>;
}

type SchemaResult<Output> =
  | { readonly success: true; readonly data: Output }
  | { readonly success: false; readonly error: { readonly issues: readonly SchemaIssue[] } };

interface SchemaIssue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

type ParseOutcome<Output> =
  | { readonly kind: 'parsed'; readonly value: Output }
  /** One line for each issue, such as `output.files[0]: Invalid input`. */
  | { readonly kind: 'refused'; readonly issues: readonly string[]; readonly cause?: unknown };

interface Parsing<Output> {
  readonly schema: Schema<Output>;
  readonly value: unknown;
  /** Name of the value in issues. */
  readonly root: string;
}

/** Never throws: a throwing transform or an asynchronous schema also counts as refused. */
export function parseWith<Output>({ schema, value, root }: Parsing<Output>): ParseOutcome<Output> {
  try {
    const result = schema.safeParse(value);
    if (result.success) return { kind: 'parsed', value: result.data };
    const issues = result.error.issues.map(({ path, message }) => `${formatPath(root, path)}: ${message}`);
    return { kind: 'refused', issues };
  } catch (thrown) {
    return { kind: 'refused', issues: [`${root}: ${toErrorData(thrown).message}`], cause: thrown };
  }
}

function formatPath(root: string, path: readonly PropertyKey[]): string {
  return root + path.map(key => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
}
