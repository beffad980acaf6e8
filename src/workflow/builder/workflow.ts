import {
  isJsonObject,
  type Json,
  type JsonObject,
  RepriseError,
  toErrorData,
  toJson,
} from '../../core/index.ts';
import {
  type FailurePolicy,
  failurePolicies,
  type InputContract,
  type InputField,
  type Selector,
  type StepModel,
  type WorkflowModel,
} from '../model.ts';
import { DefinitionError, type Problem } from '../problems.ts';
import { isWork, placeWork } from '../workspace-rules.ts';
import {
  type After,
  type AnyStep,
  type Dependency,
  type Outputs,
  parseWith,
  readDependencies,
  type Schema,
  type StepHandle,
  stepKey,
} from './handle.ts';
import { type Budget, OptionReader, stepProblems } from './rules.ts';

/** `Input` is the type that a caller passes, `RunInput` the parsed type that the steps read. */
export interface WorkflowOptions<Input, RunInput, O extends After> {
  /** Steps in the order in which they start if several are ready. Must include every dependency of every step. */
  readonly steps: readonly StepHandle<unknown, NoInfer<RunInput>>[];
  /** Schema that validates the input of a run and fills in defaults. Without it, any object is accepted. */
  readonly input?: Schema<RunInput, Input> | undefined;
  /** Steps whose outputs become the output of a run. Defaults to every step that no other step depends on. */
  readonly output?: O | undefined;
  /** What happens to the other steps when one fails. Defaults to `fail-fast`. */
  readonly onFailure?: FailurePolicy | undefined;
  /** Overrides `runtime.max_concurrent_workers`. */
  readonly maxConcurrentWorkers?: number | undefined;
  /** Limits on time, cost and tokens of a run, over all resumes. */
  readonly budget?: Budget | undefined;
  readonly description?: string | undefined;
}

/** Outputs of the named steps, or by id those of all steps that no other step depends on. */
type RunOutput<O extends After> = [O] extends [never] ? Readonly<Record<string, Json>> : Outputs<O>;

/** Defines a workflow and validates it with all of its steps. Throws DefinitionError with every problem. */
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
  reader.oneOf('onFailure', onFailure, failurePolicies);
  reader.count('maxConcurrentWorkers', maxConcurrentWorkers, 1);
  reader.spending(budget);
  return reader.problems;
}

/** Resolves the bases of workspaces and the sources of landings. Throws DefinitionError. */
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

/** Throws for a skipped step. Its type promises an output, so the caller must not get `undefined`. */
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
    `output "${alias}" reads step "${id}", which has no output because it did not succeed`,
    {
      hint: `wrap the step in maybe(...) if "${alias}" may be undefined`,
    },
  );

declare const types: unique symbol;

// A registered symbol, so that `isWorkflow` also accepts workflows from another copy of the package.
const workflowKey: unique symbol = Symbol.for('reprise.workflow');

/**
 * A validated workflow. Run it, use it as a step of another workflow, or export it from a module.
 * `Input` is the type that a caller passes (`undefined` if it declares none), `Output` the output of a completed run.
 */
export interface Workflow<in Input = never, out Output = unknown> {
  readonly name: string;
  readonly model: WorkflowModel;
  readonly [workflowKey]: true;
  readonly [types]?: ((input: Input) => Output) | undefined;
}

/** Input that a caller passes to a workflow. `undefined` if it declares none. */
export type WorkflowInput<W extends Workflow> = W extends Workflow<infer Input> ? Input : never;
/** Output of a completed run of a workflow. */
export type WorkflowOutput<W extends Workflow> = W extends Workflow<never, infer Output> ? Output : never;

/** Returns true for a workflow, even if another copy of this package created it. */
export const isWorkflow = (value: unknown): value is Workflow => isJsonObject(value) && workflowKey in value;

/** Returns a contract that validates with the schema, or accepts any object if there is none. */
export function inputContract(workflow: string, schema: Schema | undefined): InputContract {
  if (!schema) return { parse: raw => parseAnyObject(workflow, raw), fields: [] };
  let fields: readonly InputField[] | undefined;
  return {
    parse: raw => {
      const outcome = parseWith({ schema, value: raw === undefined ? {} : raw, root: 'input' });
      if (outcome.kind === 'refused') throw refusal(workflow, outcome);
      return storable(workflow, outcome.value);
    },
    get fields() {
      fields ??= inputFields(schema);
      return fields;
    },
  };
}

function parseAnyObject(workflow: string, raw: unknown): Json {
  const value = raw === undefined ? {} : raw;
  if (!isJsonObject(value)) throw refusal(workflow, { issues: ['input: expected an object'] });
  return storable(workflow, value);
}

function storable(workflow: string, value: unknown): Json {
  try {
    return toJson(value, 'input');
  } catch (thrown) {
    throw refusal(workflow, { issues: [toErrorData(thrown).message], cause: thrown });
  }
}

function refusal(
  workflow: string,
  { issues, cause }: { readonly issues: readonly string[]; readonly cause?: unknown },
): RepriseError {
  const list = issues.map(issue => `\n  ${issue}`).join('');
  return new RepriseError('INPUT_INVALID', `invalid input for workflow "${workflow}":${list}`, {
    cause,
  });
}

/** Returns the fields of an object schema, as far as the schema describes them. Never throws. */
function inputFields(schema: Schema): readonly InputField[] {
  const described = jsonSchemaOf(schema);
  const properties = described?.['properties'];
  if (!described || !isJsonObject(properties)) return fieldNames(schema);
  const required = Array.isArray(described['required']) ? described['required'] : [];
  return Object.entries(properties).map(([name, property]) =>
    toField({ name, property: isJsonObject(property) ? property : {}, required: required.includes(name) }),
  );
}

function jsonSchemaOf(schema: Schema): JsonObject | undefined {
  if (!('toJSONSchema' in schema) || typeof schema.toJSONSchema !== 'function') return undefined;
  try {
    const described = toJson(schema.toJSONSchema({ io: 'input', unrepresentable: 'any' }));
    return isJsonObject(described) ? described : undefined;
  } catch {
    return undefined;
  }
}

interface InputProperty {
  readonly name: string;
  readonly property: JsonObject;
  readonly required: boolean;
}

function toField({ name, property, required }: InputProperty): InputField {
  const { description, default: defaultValue } = property;
  return {
    name,
    ...typeOf(property),
    required,
    ...(defaultValue === undefined ? {} : { default: defaultValue }),
    ...(typeof description === 'string' ? { description } : {}),
  };
}

function typeOf(property: JsonObject): Pick<InputField, 'type' | 'options'> {
  const { enum: options, const: constant, anyOf, type } = property;
  if (isTexts(options)) return { type: 'choice', options };
  if (typeof constant === 'string') return { type: 'choice', options: [constant] };
  if (Array.isArray(anyOf)) {
    const only = onlyOne(anyOf.filter(isJsonObject).filter(({ type }) => type !== 'null'));
    return only ? typeOf(only) : { type: 'json' };
  }
  switch (Array.isArray(type) ? onlyOne(type.filter(name => name !== 'null')) : type) {
    case 'string':
      return { type: 'string' };
    case 'boolean':
      return { type: 'boolean' };
    case 'number':
    case 'integer':
      return { type: 'number' };
    default:
      return { type: 'json' };
  }
}

const onlyOne = <T>(items: readonly T[]): T | undefined => (items.length === 1 ? items[0] : undefined);

const isTexts = (value: Json | undefined): value is readonly string[] =>
  Array.isArray(value) && value.every(item => typeof item === 'string');

/** Returns only names and required flags, for schemas without `toJSONSchema` (zod/mini). */
function fieldNames(schema: Schema): readonly InputField[] {
  const shape = at(at(schema._zod, 'def'), 'shape');
  if (typeof shape !== 'object' || shape === null) return [];
  return Object.entries(shape).map(([name, field]) => ({
    name,
    type: 'json',
    required: at(at(field, '_zod'), 'optin') === undefined,
  }));
}

const at = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
