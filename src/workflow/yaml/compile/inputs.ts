import { isJsonObject, type Json, nearest, RepriseError, toErrorData, toJson } from '../../../core/index.ts';
import type { InputContract, InputField } from '../../model.ts';
import type { InputDefinition, WorkflowDefinition } from '../schema.ts';
import type { ProblemList } from '../source/problem-list.ts';
import type { ProblemContext, YamlSource } from '../source/yaml-source.ts';

type Inputs = NonNullable<WorkflowDefinition['inputs']>;

/** Compiles the `inputs` of a workflow and reports contradictions. */
export function compileInputs(inputs: Inputs, source: YamlSource, problems: ProblemList): InputContract {
  const fields = Object.entries(inputs).map(([name, definition]) => toField(name, definition ?? {}));
  for (const [name, definition] of Object.entries(inputs))
    checkOptions(name, definition ?? {}, { source, problems });
  for (const field of fields) {
    const objection = field.default === undefined ? undefined : objectToValue(field, field.default);
    if (objection) {
      const message = `the default of \`${field.name}\` ${objection}`;
      problems.add(source, { path: ['inputs', field.name, 'default'], message, hint: quoteHint(field) });
    }
  }
  return contractOf(fields);
}

function toField(name: string, { type = 'string', required = false, ...rest }: InputDefinition): InputField {
  return {
    name,
    type,
    required: required && rest.default === undefined,
    ...(rest.default === undefined ? {} : { default: rest.default }),
    ...(rest.description === undefined ? {} : { description: rest.description }),
    ...(rest.options === undefined ? {} : { options: rest.options }),
  };
}

function checkOptions(
  name: string,
  { type, options }: InputDefinition,
  { source, problems }: ProblemContext,
): void {
  if (type === 'choice' && !options) {
    problems.add(source, {
      path: ['inputs', name],
      message: `the choice \`${name}\` requires \`options\``,
      hint: 'for example `options: [fast, thorough]`',
    });
  }
  if (type !== 'choice' && options) {
    const path = ['inputs', name, 'options'];
    problems.add(source, {
      path,
      atKey: true,
      message: '`options` is only allowed for a choice',
      hint: 'add `type: choice`',
    });
  }
}

const quoteHint = ({ type, default: value }: InputField): string | undefined =>
  type === 'string' && (typeof value === 'number' || typeof value === 'boolean')
    ? `put it in quotes: "${value}"`
    : undefined;

function contractOf(fields: readonly InputField[]): InputContract {
  return { fields, parse: raw => parseInputs(fields, raw) };
}

function parseInputs(fields: readonly InputField[], raw: unknown): Json {
  const given = asJson(raw ?? {});
  if (!isJsonObject(given)) throw invalid(['the input must be a map of names to values']);
  const names = fields.map(({ name }) => name);
  const complaints = Object.keys(given)
    .filter(name => !names.includes(name))
    .map(name => unknownInput(name, names));
  const entries: [string, Json][] = [];
  for (const field of fields) {
    const value = (Object.hasOwn(given, field.name) ? given[field.name] : undefined) ?? field.default;
    if (value === undefined) {
      if (field.required) complaints.push(`\`${field.name}\` is required`);
      continue;
    }
    const objection = objectToValue(field, value);
    if (objection) complaints.push(`\`${field.name}\` ${objection}`);
    entries.push([field.name, value]);
  }
  if (complaints.length > 0) throw invalid(complaints);
  return Object.fromEntries(entries);
}

function asJson(raw: unknown): Json {
  try {
    return toJson(raw, 'input');
  } catch (error) {
    throw invalid([toErrorData(error).message]);
  }
}

function unknownInput(name: string, names: readonly string[]): string {
  const guess = nearest(name, names);
  return `unknown input \`${name}\`${guess ? `; did you mean \`${guess}\`?` : ''}`;
}

/** Explains why a value is invalid, as the rest of a sentence. `undefined` if it is valid. */
export function objectToValue({ type, options = [] }: InputField, value: Json): string | undefined {
  switch (type) {
    case 'json':
      return undefined;
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === type ? undefined : `must be ${typeNames[type]}, not ${shown(value)}`;
    case 'choice':
      if (options.length === 0 || options.some(option => option === value)) return undefined;
      return `must be one of ${options.join(', ')}, not ${shown(value)}`;
  }
}

const typeNames = { string: 'a string', number: 'a number', boolean: 'true or false' } as const;

const shown = (value: Json): string => {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
};

const invalid = (complaints: readonly string[]) => new RepriseError('INPUT_INVALID', complaints.join('\n'));
