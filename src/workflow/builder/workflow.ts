import { RepriseError } from '../../core/errors.ts';
import type { Json, JsonObject } from '../../core/json.ts';
import {
  type After,
  type AnyStep,
  type Dependency,
  type Outputs,
  type StepHandle,
  stepKey,
} from '../define/handle.ts';
import { inputContract } from '../define/input-contract.ts';
import type { Schema } from '../define/schema.ts';
import { stepProblems } from '../define/step-problems.ts';
import { type Workflow, workflowKey } from '../define/workflow-value.ts';
import { type FailurePolicy, failurePolicies, type Selector, type StepModel } from '../model.ts';
import { DefinitionError, type Problem } from '../problems.ts';
import { isWork, placeWork } from '../workspace-rules.ts';
import { readDependencies } from './handle.ts';
import { type Budget, OptionReader } from './rules.ts';

/** `Input` is what a caller passes, `RunInput` what the schema makes of it for the steps. */
export interface WorkflowOptions<Input, RunInput, O extends After> {
  /** In the order in which they start when several may; every step that another comes after must be among them. */
  readonly steps: readonly StepHandle<unknown, NoInfer<RunInput>>[];
  /** Checks the input of a run and fills in defaults. Without it any object is accepted. */
  readonly input?: Schema<RunInput, Input> | undefined;
  /** What a run gives back, from the outputs of these steps. Without it, the output of every step that none comes after. */
  readonly output?: O | undefined;
  /** `fail-fast` by default. */
  readonly onFailure?: FailurePolicy | undefined;
  /** Overrides `runtime.max_concurrent_workers`. */
  readonly maxConcurrentWorkers?: number | undefined;
  /** What a run may use up, over all resumes. */
  readonly budget?: Budget | undefined;
  readonly description?: string | undefined;
}

/** The outputs of the named steps, or by id those of all that no step comes after. */
export type RunOutput<O extends After> = [O] extends [never] ? Readonly<Record<string, Json>> : Outputs<O>;

/** Defines a workflow and checks it as a whole. Throws DefinitionError with every problem at once. */
export function workflow<Input = undefined, RunInput = JsonObject, O extends After = never>(
  name: string,
  options: WorkflowOptions<Input, RunInput, O>,
): Workflow<Input, RunOutput<O>> {
  const { onFailure = 'fail-fast', maxConcurrentWorkers, budget, description, input } = options;
  const reader = new OptionReader('workflow', name);
  const output = readDependencies(options.output, { reader, option: 'output' });
  const problems = [
    ...optionProblems(name, options),
    ...stepProblems({ workflow: name, steps: options.steps, output }),
    ...reader.problems,
  ];
  if (problems.length > 0) throw new DefinitionError(problems);
  const spending = reader.spending(budget);
  return {
    name,
    [workflowKey]: true,
    model: {
      name,
      description,
      input: inputContract(name, input),
      steps: placedSteps(options.steps),
      onFailure,
      maxConcurrentWorkers,
      budgetMs: budget?.minutes === undefined ? undefined : budget.minutes * 60_000,
      budget: spending,
      output: options.output && outputSelector(output),
    },
  };
}

function optionProblems<Input, RunInput, O extends After>(
  name: string,
  { onFailure, maxConcurrentWorkers, budget }: WorkflowOptions<Input, RunInput, O>,
): readonly Problem[] {
  const reader = new OptionReader('workflow', name);
  if (typeof name !== 'string' || name.trim() === '') reader.problem('its name is empty');
  if (onFailure !== undefined && !failurePolicies.includes(onFailure)) {
    reader.problem(`onFailure is ${JSON.stringify(onFailure)}`, `one of ${failurePolicies.join(', ')}`);
  }
  if (
    maxConcurrentWorkers !== undefined &&
    (!Number.isInteger(maxConcurrentWorkers) || maxConcurrentWorkers < 1)
  ) {
    reader.problem(`maxConcurrentWorkers is ${maxConcurrentWorkers}`, 'a whole number from 1');
  }
  reader.spending(budget);
  return reader.problems;
}

/** Decides where workspaces begin, and what is landed. */
function placedSteps(steps: readonly AnyStep[]): readonly StepModel[] {
  const definitions = steps.map(step => step[stepKey]);
  if (!definitions.some(({ place }) => isWork(place))) return definitions.map(({ model }) => model);
  const { bodies, problems } = placeWork(definitions);
  if (problems.length > 0) {
    throw new DefinitionError(
      problems.map(({ index, message, hint }) => ({
        message: `step ${JSON.stringify(steps[index]?.id)}: ${message}`,
        hint,
      })),
    );
  }
  return definitions.map(({ model }, index) => {
    const body = bodies[index];
    return body === undefined || body === model.body ? model : (model.withBody?.(body) ?? model);
  });
}

/** A skipped step has no output, though the type promises one: failing here beats an `undefined` in the caller. */
function outputSelector(dependencies: readonly Dependency[]): Selector<Json> {
  return ({ steps }) => {
    const entries: [string, Json][] = [];
    for (const { alias, step, tolerant } of dependencies) {
      const outputs = steps[step.id]?.outputs;
      if (outputs !== undefined) entries.push([alias, outputs]);
      else if (!tolerant) throw noOutput(alias, step.id);
    }
    return Object.fromEntries(entries);
  };
}

const noOutput = (alias: string, id: string) =>
  new RepriseError(
    'EXPRESSION_FAILED',
    `output "${alias}" comes from step "${id}", which has no output because it did not succeed`,
    {
      hint: `write maybe(...) around it, so that "${alias}" may be undefined`,
    },
  );
