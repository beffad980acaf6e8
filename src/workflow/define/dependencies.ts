import type { Json } from '../../core/json.ts';
import type { Need, Scope, Selector } from '../model.ts';
import { type After, type Dependency, isMaybe, isStep, maybeKey, type Outputs } from './handle.ts';
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
  const dependencies: Dependency[] = [];
  for (const alias of Object.keys(after)) {
    const value: unknown = after[alias];
    const tolerant = isMaybe(value);
    const step = tolerant ? value[maybeKey] : value;
    if (isStep(step)) dependencies.push({ alias, step, tolerant });
    else reader.problem(`${option}.${alias} is not a step`, notAStepHint(value));
  }
  // The copy has no room for more: lists that grow keep some, and there may be many of them.
  return dependencies.slice();
}

const notAStepHint = (value: unknown): string =>
  value === undefined
    ? 'it is undefined: define the step above this one, and look for modules that import each other'
    : 'give it what step(), shell(), agent(), approve() or land() returned';

/** One need per step: a step that stands under several names must succeed unless all of them are `maybe`. */
export function needsOf(dependencies: readonly Dependency[]): readonly Need[] {
  if (dependencies.length === 0) return none;
  if (dependencies.length === 1) return dependencies.map(({ step, tolerant }) => ({ id: step.id, tolerant }));
  const tolerances = new Map<string, boolean>();
  for (const { step, tolerant } of dependencies) {
    tolerances.set(step.id, tolerant && (tolerances.get(step.id) ?? true));
  }
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
