import { buildStep, optionReader, type WorkOptions } from './build.ts';
import { type Select, toSelector } from './dependencies.ts';
import type { After, StepHandle } from './handle.ts';
import { isWorkflow, type Workflow } from './workflow-value.ts';

export type ChildStepOptions<A extends After, Input, ChildInput, Output> = WorkOptions<A, Input> & {
  readonly uses: Workflow<ChildInput, Output>;
  readonly run?: undefined;
} & WithInput<A, Input, ChildInput>;

/** `with` is required exactly when the child declares an input. */
export type WithInput<A extends After, Input, ChildInput> = [ChildInput] extends [undefined]
  ? { readonly with?: undefined }
  : {
      /** A pure function: the child's input, before the child's own schema has checked it. */
      readonly with: Select<A, Input, NoInfer<ChildInput>>;
    };

export function childStep<A extends After, Input, ChildInput, Output>(
  id: string,
  options: ChildStepOptions<A, Input, ChildInput, Output>,
): StepHandle<unknown, Input> {
  const {
    uses,
    with: select,
  }: { uses: Workflow<ChildInput, Output>; with?: Select<A, Input, unknown> | undefined } = options;
  const reader = optionReader(id);
  if (!isWorkflow(uses)) reader.problem('`uses` is not a workflow', 'give it what workflow() returned');
  return buildStep({
    id,
    options,
    reader,
    body: dependencies => ({
      kind: 'uses',
      workflow: uses.model,
      input: select ? toSelector(dependencies, select) : () => ({}),
    }),
    // The child's steps have fingerprints of their own: a change inside runs only what it concerns again.
    describe: () => [uses.model.name, uses.model.onFailure, select ? String(select) : null],
  });
}
