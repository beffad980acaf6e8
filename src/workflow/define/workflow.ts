import { RepriseError } from '../../core/errors.ts';
import type { Json, JsonObject } from '../../core/json.ts';
import { type FailurePolicy, failurePolicies, type Selector } from '../model.ts';
import { DefinitionError, type Problem } from '../problems.ts';
import { readDependencies } from './dependencies.ts';
import { type After, type Dependency, type Outputs, type StepHandle, stepKey } from './handle.ts';
import { inputContract } from './input-contract.ts';
import { OptionReader } from './rules.ts';
import type { Schema } from './schema.ts';
import { stepProblems } from './step-problems.ts';
import { type Workflow, workflowKey } from './workflow-value.ts';

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
  /** Wall time that a run may take, over all resumes. */
  readonly budget?: { readonly minutes?: number | undefined } | undefined;
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
  const output = readDependencies(options.output, `workflow ${JSON.stringify(name)}: output`);
  const problems = [
    ...optionProblems(name, options),
    ...stepProblems({ workflow: name, steps: options.steps, output: output.dependencies }),
    ...output.problems,
  ];
  if (problems.length > 0) throw new DefinitionError(problems);
  return {
    name,
    [workflowKey]: true,
    model: {
      name,
      description,
      input: inputContract(name, input),
      steps: options.steps.map(step => step[stepKey].model),
      onFailure,
      maxConcurrentWorkers,
      budgetMs: budget?.minutes === undefined ? undefined : budget.minutes * 60_000,
      output: options.output && outputSelector(output.dependencies),
    },
  };
}

function optionProblems<Input, RunInput, O extends After>(
  name: string,
  { onFailure, maxConcurrentWorkers, budget }: WorkflowOptions<Input, RunInput, O>,
): readonly Problem[] {
  const reader = new OptionReader(`workflow ${JSON.stringify(name)}`);
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
  const minutes = budget?.minutes;
  if (minutes !== undefined && !(Number.isFinite(minutes) && minutes > 0)) {
    reader.problem(`budget.minutes is ${minutes}`, 'a number above 0');
  }
  return reader.problems;
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
