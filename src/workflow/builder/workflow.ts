import { RepriseError, toErrorData } from '../../core/errors.ts';
import { isJsonObject, type Json, type JsonObject, toJson } from '../../core/json.ts';
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
type RunOutput<O extends After> = [O] extends [never] ? Readonly<Record<string, Json>> : Outputs<O>;

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

declare const types: unique symbol;

// A registered symbol, so that a workflow from another copy of the package is one too.
const workflowKey: unique symbol = Symbol.for('reprise.workflow');

/**
 * A workflow that was checked as a whole: to run it, to use it as a step of another, or to export it from a module.
 * `Input` is what a caller passes (`undefined` when it declares none), `Output` what a completed run gives back.
 */
export interface Workflow<in Input = never, out Output = unknown> {
  readonly name: string;
  readonly model: WorkflowModel;
  readonly [workflowKey]: true;
  readonly [types]?: ((input: Input) => Output) | undefined;
}

/** What a caller passes to a workflow; `undefined` when it declares no input. */
export type WorkflowInput<W extends Workflow> = W extends Workflow<infer Input> ? Input : never;
/** What a completed run of a workflow gives back. */
export type WorkflowOutput<W extends Workflow> = W extends Workflow<never, infer Output> ? Output : never;

/** Whether it is a workflow, also one that another copy of this package made. */
export const isWorkflow = (value: unknown): value is Workflow => isJsonObject(value) && workflowKey in value;

/** What a workflow accepts: what the schema says, or, without one, any object. */
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
  return new RepriseError('INPUT_INVALID', `the input does not fit workflow "${workflow}":${list}`, {
    cause,
  });
}

/** The fields of an object schema, for help and for `--input key=value`. As good as the schema can say; never throws. */
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

interface Property {
  readonly name: string;
  readonly property: JsonObject;
  readonly required: boolean;
}

function toField({ name, property, required }: Property): InputField {
  const { description, default: byDefault } = property;
  return {
    name,
    ...typeOf(property),
    required,
    ...(byDefault === undefined ? {} : { default: byDefault }),
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

/** For schemas that cannot describe themselves (zod/mini): the names, and whether they are required. */
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
