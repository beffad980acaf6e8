import { buildStep, optionReader, type WorkOptions } from '../builder/build.ts';
import { checkFanOut, describeFanOut, type FanOutOptions, fanOutReader } from '../builder/fan-out.ts';
import { type ItemSelect, toItemSelector } from '../builder/handle.ts';
import type { After, StepHandle } from './handle.ts';
import { isWorkflow, type Workflow } from './workflow-value.ts';

export type ChildStepOptions<
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
export type WithInput<A extends After, Input, ChildInput, Item> = [ChildInput] extends [undefined]
  ? { readonly with?: undefined }
  : {
      /** A pure function: the child's input, before the child's own schema has checked it. */
      readonly with: ItemSelect<A, Input, Item, NoInfer<ChildInput>>;
    };

export function childStep<A extends After, Input, ChildInput, Output, Item extends object>(
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
