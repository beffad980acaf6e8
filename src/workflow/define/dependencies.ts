import type { Json } from '../../core/json.ts';
import type { Need, Scope, Selector } from '../model.ts';
import type { Problem } from '../problems.ts';
import { type After, type Dependency, isMaybe, isStep, maybeKey, type Outputs } from './handle.ts';

/** A pure function of what a step may read. */
export type Select<A extends After, Input, T> = (outputs: Outputs<A>, input: Input) => T;

export interface ReadDependencies {
  readonly dependencies: readonly Dependency[];
  readonly problems: readonly Problem[];
}

/** Reads `after` (or a workflow's `output`); `place` names it in messages. */
export function readDependencies(after: After | undefined, place: string): ReadDependencies {
  const dependencies: Dependency[] = [];
  const problems: Problem[] = [];
  for (const [alias, value] of Object.entries<unknown>(after ?? {})) {
    const step = isMaybe(value) ? value[maybeKey] : value;
    if (isStep(step)) dependencies.push({ alias, step, tolerant: isMaybe(value) });
    else problems.push({ message: `${place}.${alias} is not a step`, hint: notAStepHint(value) });
  }
  return { dependencies, problems };
}

const notAStepHint = (value: unknown): string =>
  value === undefined
    ? 'it is undefined: define the step above this one, and look for modules that import each other'
    : 'give it what step(), shell() or approve() returned';

/** One need per step: a step that stands under several names must succeed unless all of them are `maybe`. */
export function needsOf(dependencies: readonly Dependency[]): readonly Need[] {
  if (dependencies.length <= 1) return dependencies.map(({ step, tolerant }) => ({ id: step.id, tolerant }));
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
