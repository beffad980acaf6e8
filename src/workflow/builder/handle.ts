import { type ErrorData, RepriseError, toErrorData } from '../../core/errors.ts';
import { isJsonObject, type Json } from '../../core/json.ts';
import type { Body, Need, Scope, Selector, StepModel } from '../model.ts';
import type { Problem } from '../problems.ts';
import type { WorkPlace } from '../workspace-rules.ts';
import type { OptionReader } from './rules.ts';

/** What one copy of a step came to. */
export interface WorkerResult<Output> {
  /** From 0. */
  readonly index: number;
  readonly status: 'completed' | 'failed' | 'cancelled';
  /** If it completed. */
  readonly output?: Output;
  /** If it failed. */
  readonly error?: ErrorData;
  readonly workspace: string | null;
  readonly branch: string | null;
  /** In US dollars; `null` if it is not known. */
  readonly cost: number | null;
  readonly duration_ms: number;
}

/** What a step with `concurrency` or `matrix` gives to those after it: every copy in its place, however it ended. */
export interface WorkerResults<Output> {
  readonly worker_results: readonly WorkerResult<Output>[];
  readonly total_workers: number;
  readonly success_count: number;
  readonly fail_count: number;
  readonly cancelled_count: number;
  /** The index of the copy that `select` picked. */
  readonly selected?: number;
}

/** What a step gives that may be multiplied: `concurrency` of 0 or 1 is an ordinary step. */
export type FannedOut<Copies extends number, Item, Output> = [Item] extends [never]
  ? number extends Copies
    ? Output | WorkerResults<Output>
    : Copies extends 0 | 1
      ? Output
      : WorkerResults<Output>
  : WorkerResults<Output>;

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

/** A pure function of what a step may read. */
export type Select<A extends After, Input, T> = (outputs: Outputs<A>, input: Input) => T;

/** The same for one copy of a step: the item is its own, if the step has a matrix. */
export type ItemSelect<A extends After, Input, Item, T> = (
  outputs: Outputs<A>,
  input: Input,
  item: Item,
) => T;

const none: readonly never[] = [];

/** Reads `after` (or a workflow's `output`), which `option` names in messages. */
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

/** Need and dependency in one, as there may be many. A model that lists it as a need shows nothing of handles. */
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

/** A list that something is pushed to gets room for seventeen more, and most have one entry or two. */
function withOneMore(list: readonly Dependency[], item: Dependency): readonly Dependency[] {
  if (list.length === 0) return [item];
  if (list.length < 3) return list.concat(item);
  (list as Dependency[]).push(item);
  return list;
}

const notAStepHint = (value: unknown): string =>
  value === undefined
    ? 'it is undefined: define the step above this one, and look for modules that import each other'
    : 'give it what step(), shell(), agent(), approve() or land() returned';

/** One need per step: a step that stands under several names must succeed unless all of them are `maybe`. */
export function needsOf(dependencies: readonly Dependency[]): readonly Need[] {
  if (dependencies.length < 2) return dependencies;
  const tolerances = new Map<string, boolean>();
  for (const { id, tolerant } of dependencies) {
    tolerances.set(id, tolerant && (tolerances.get(id) ?? true));
  }
  if (tolerances.size === dependencies.length) return dependencies;
  return Array.from(tolerances, ([id, tolerant]) => ({ id, tolerant }));
}

/** The outputs of the dependencies under the names that the step knows them by. */
export function readOutputs(
  dependencies: readonly Dependency[],
  scope: Scope,
): Record<string, Json | undefined> {
  return Object.fromEntries(dependencies.map(({ alias, step }) => [alias, scope.steps[step.id]?.outputs]));
}

/** Turns a function of outputs and input into one of the scope. The types hold because `workflow` checked the graph. */
export function toSelector<A extends After, Input, T>(
  dependencies: readonly Dependency[],
  select: Select<A, Input, T>,
): Selector<T> {
  return scope => select(readOutputs(dependencies, scope) as Outputs<A>, scope.inputs as Input);
}

/** The same for one copy of a step; what is not a function is the value itself. */
export function toItemSelector<A extends After, Input, Item, T>(
  dependencies: readonly Dependency[],
  given: T | ItemSelect<A, Input, Item, T>,
): Selector<T> {
  if (!isFunction(given)) return () => given;
  return scope =>
    given(
      readOutputs(dependencies, scope) as Outputs<A>,
      scope.inputs as Input,
      (scope.matrix ?? {}) as Item,
    );
}

const isFunction = <T, F extends (...args: never) => T>(value: T | F): value is F =>
  typeof value === 'function';

type Nothing = ReturnType<() => void>;

/** An output as history gives it back: nothing is stored as `null`. */
export type Stored<T> = T extends Nothing ? null : T;

type Primitive = string | number | bigint | boolean | symbol | null | undefined;

/** The same type for reading, so that what was inferred as constant fits too. */
export type DeepReadonly<T> = unknown extends T
  ? T
  : T extends Primitive | ((...args: never) => unknown)
    ? T
    : T extends readonly (infer Item)[]
      ? number extends T['length']
        ? ReadonlyList<Item>
        : { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
      : { readonly [Key in keyof T]: DeepReadonly<T[Key]> };

/** An interface is resolved only when needed: the type of all JSON would have no end otherwise. */
interface ReadonlyList<Item> extends ReadonlyArray<DeepReadonly<Item>> {}

/** Checks an output against the schema of its step; throws OUTPUT_INVALID with every issue in one line. */
export function outputParser(schema: Schema | undefined): ((output: unknown) => unknown) | undefined {
  if (!schema) return undefined;
  return output => {
    const outcome = parseWith({ schema, value: output, root: 'output' });
    if (outcome.kind === 'parsed') return outcome.value;
    throw new RepriseError('OUTPUT_INVALID', outcome.issues.join('; '), { cause: outcome.cause });
  };
}

/**
 * What Reprise asks of a schema: any zod 4 schema has it, of whichever copy or flavour of zod.
 * Stated here so that importing the API does not load zod.
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
  /** One line each, such as `output.files[0]: Invalid input`. */
  | { readonly kind: 'refused'; readonly issues: readonly string[]; readonly cause?: unknown };

interface Parsing<Output> {
  readonly schema: Schema<Output>;
  readonly value: unknown;
  /** What issues call the value. */
  readonly root: string;
}

/** Never throws: a transform that throws, or a schema that can only be parsed asynchronously, is a refusal too. */
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
