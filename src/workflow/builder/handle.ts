import type { Json } from '../../core/json.ts';
import {
  type After,
  type AnyStep,
  type Dependency,
  isMaybe,
  isStep,
  maybeKey,
  type Outputs,
} from '../define/handle.ts';
import type { Need, Scope, Selector } from '../model.ts';
import type { OptionReader } from './rules.ts';

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
