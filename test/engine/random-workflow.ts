import fc from 'fast-check';
import { unitOf } from '../../src/engine/state/graph.ts';
import type { FailurePolicy, FanOut, StepModel, WorkflowModel } from '../../src/workflow/model.ts';

/** A workflow as plain data, so that a failing example can be read and shrunk. */
export interface WorkflowSpec {
  readonly steps: readonly StepSpec[];
  readonly onFailure: FailurePolicy;
}

export interface StepSpec {
  /** Dependencies, as indexes of earlier steps. A tolerant one accepts any status. */
  readonly needs: readonly { readonly of: number; readonly tolerant: boolean }[];
  readonly does: 'succeeds' | 'fails' | 'fails at first' | 'sleeps';
  readonly attempts: number;
  readonly optional: boolean;
  readonly condition: boolean;
  readonly child: WorkflowSpec | undefined;
  readonly fanOut: FanOutSpec | undefined;
}

export interface FanOutSpec {
  readonly kind: 'concurrency' | 'matrix';
  readonly total: number;
  readonly maxParallel: number | undefined;
  readonly onFailure: FailurePolicy;
}

const stepSpec = (
  index: number,
  depth: number,
  onFailure: fc.Arbitrary<FailurePolicy>,
): fc.Arbitrary<StepSpec> =>
  fc.record({
    needs:
      index === 0
        ? fc.constant([])
        : fc.uniqueArray(fc.record({ of: fc.nat(index - 1), tolerant: fc.boolean() }), {
            maxLength: 3,
            selector: need => need.of,
          }),
    does: fc.oneof(
      { weight: 5, arbitrary: fc.constant('succeeds' as const) },
      {
        weight: 1,
        arbitrary: fc.constantFrom('fails' as const, 'fails at first' as const, 'sleeps' as const),
      },
    ),
    attempts: fc.integer({ min: 1, max: 3 }),
    optional: fc.boolean(),
    condition: fc.oneof(
      { weight: 8, arbitrary: fc.constant(true) },
      { weight: 1, arbitrary: fc.constant(false) },
    ),
    child:
      depth > 0
        ? fc.option(workflowSpec({ depth: depth - 1, maxSteps: 4, onFailure }), { nil: undefined, freq: 4 })
        : fc.constant(undefined),
    fanOut: fc.option(
      fc.record({
        kind: fc.constantFrom('concurrency' as const, 'matrix' as const),
        total: fc.integer({ min: 0, max: 4 }),
        maxParallel: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
        onFailure,
      }),
      { nil: undefined, freq: 4 },
    ),
  });

export interface SpecOptions {
  readonly depth: number;
  readonly maxSteps: number;
  readonly onFailure: fc.Arbitrary<FailurePolicy>;
}

export const workflowSpec = ({ depth, maxSteps, onFailure }: SpecOptions): fc.Arbitrary<WorkflowSpec> =>
  fc.record({
    steps: fc
      .integer({ min: 1, max: maxSteps })
      .chain(count =>
        fc.tuple(...Array.from({ length: count }, (_, index) => stepSpec(index, depth, onFailure))),
      ),
    onFailure,
  });

/** The work of the step functions. Its duration must not affect the outcome. */
export interface Behaviour {
  /** Called when a step runs. The step takes as long as the promise. */
  readonly work: (path: string, attempt: number) => Promise<void>;
}

/** Builds the workflow that a spec describes. */
export function buildWorkflow(spec: WorkflowSpec, behaviour: Behaviour, name = 'random'): WorkflowModel {
  return {
    name,
    input: { parse: () => ({}), fields: [] },
    steps: spec.steps.map((step, index) => buildStep({ step, index, behaviour })),
    onFailure: spec.onFailure,
  };
}

function buildStep({
  step,
  index,
  behaviour,
}: {
  step: StepSpec;
  index: number;
  behaviour: Behaviour;
}): StepModel {
  const id = `s${index}`;
  return {
    id,
    needs: step.needs.map(({ of, tolerant }) => ({ id: `s${of}`, tolerant })),
    ...(step.condition ? {} : { condition: () => false }),
    optional: step.optional,
    ...(step.attempts > 1
      ? { retry: { attempts: step.attempts, backoff: { initialMs: 0, factor: 1, maxMs: 0 } } }
      : {}),
    timeout: {},
    ...(step.fanOut ? { fanOut: buildFanOut(step.fanOut) } : {}),
    fingerprint: id,
    body: step.child
      ? { kind: 'uses', workflow: buildWorkflow(step.child, behaviour, `child-of-${id}`), input: () => ({}) }
      : {
          kind: 'function',
          run: async (scope, ctx) => {
            await behaviour.work(unitOf(ctx.step, ctx.worker), ctx.attempt);
            if (step.does === 'sleeps') await ctx.sleep(0);
            if (step.does === 'fails' || (step.does === 'fails at first' && ctx.attempt === 1))
              throw new Error(`${ctx.step} fails`);
            const inputs = Object.values(scope.steps).map(({ outputs }) => outputs ?? null);
            return { step: ctx.step, item: scope.matrix ?? null, inputs };
          },
        },
  };
}

const buildFanOut = ({ total, ...rest }: FanOutSpec): FanOut => ({
  ...rest,
  items: () => Array.from({ length: total }, (_, item) => (rest.kind === 'matrix' ? { item } : {})),
});

const turn = () => new Promise<void>(resolve => setImmediate(resolve));

/** Returns work whose calls take the numbers of event loop turns in the table, cyclically. */
export function turnsFrom(table: readonly number[]): Behaviour['work'] {
  let next = 0;
  return async () => {
    const turns = table[next++ % table.length] ?? 0;
    for (let left = turns; left > 0; left--) await turn();
  };
}

export const turnTable = fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 1, maxLength: 12 });
