import type { z } from 'zod';
import { isJsonObject, type Json, nearest } from '../../../core/index.ts';
import type { Complaint } from './problem-list.ts';
import type { Path } from './yaml-source.ts';

export type ZodIssue = z.core.$ZodIssue;

/** Wording for one kind of file. */
export interface Wording {
  /** Message for a key that is not allowed at a path. `'silent'` reports nothing, `undefined` the default message. */
  readonly unknownKey: (
    key: string,
    parent: Path,
  ) => { message: string; hint?: string | undefined } | 'silent' | undefined;
  /** Hint for an invalid value at a path. */
  readonly hintAt?: (path: Path) => string | undefined;
  /** Keys that are allowed at a path, for suggestions. */
  readonly keysAt: (parent: Path) => readonly string[];
}

/** Returns a readable message for each schema issue. */
export function explainIssues(
  issues: readonly ZodIssue[],
  value: Json,
  wording: Wording,
): readonly Complaint[] {
  return issues.flatMap(issue => explainIssue(issue, value, wording));
}

function explainIssue(issue: ZodIssue, value: Json, wording: Wording): readonly Complaint[] {
  const path = issue.path.filter(key => typeof key !== 'symbol');
  const name = nameOf(path);
  const found = valueAt(value, path);
  const say = (rest: string, hint?: string): readonly Complaint[] => [
    { path, message: `${name} ${rest}`, hint: hint ?? wording.hintAt?.(path) },
  ];
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.flatMap(key => explainUnknownKey(key, path, wording));
    case 'invalid_type':
      if (found === undefined) return [missing(path)];
      // Messages of zod itself start with 'Invalid input'. Any other message comes from our schema and says more.
      if (!issue.message.startsWith('Invalid input')) return say(issue.message);
      return say(
        `must be ${typeNames[issue.expected] ?? issue.expected}, not ${describe(found)}`,
        quoteHint(issue.expected, found),
      );
    case 'invalid_value': {
      const values = issue.values.map(String);
      const guess = typeof found === 'string' ? nearest(found, values) : undefined;
      return say(`must be ${listed(values)}, not ${describe(found)}`, guess && `did you mean \`${guess}\`?`);
    }
    case 'too_small':
      if (issue.origin === 'string' || issue.origin === 'array') return say(issue.message);
      return say(
        `must be ${issue.inclusive ? 'at least' : 'more than'} ${issue.minimum}, not ${describe(found)}`,
      );
    case 'too_big':
      return say(
        `must be ${issue.inclusive ? 'at most' : 'less than'} ${issue.maximum}, not ${describe(found)}`,
      );
    case 'invalid_format':
      return say(`${issue.message}, not ${describe(found)}`);
    case 'invalid_key':
      return [{ path, atKey: true, message: `${name} ${issue.issues[0]?.message ?? 'is not a valid key'}` }];
    case 'invalid_union':
      return explainUnion(issue, value, wording);
    case 'not_multiple_of':
    case 'invalid_element':
    case 'custom':
      return say(issue.message);
  }
}

/** If the value has the type of exactly one alternative, reports the issues of that alternative. */
function explainUnion(
  issue: z.core.$ZodIssueInvalidUnion,
  value: Json,
  wording: Wording,
): readonly Complaint[] {
  const path = issue.path.filter(key => typeof key !== 'symbol');
  const meant = issue.errors.filter(
    branch => !branch.some(({ code, path }) => code === 'invalid_type' && path.length === 0),
  );
  const [only, ...others] = meant;
  if (only && others.length === 0) {
    const inner = only.map(nested => ({ ...nested, path: [...issue.path, ...nested.path] }));
    return explainIssues(inner, value, wording);
  }
  return [{ path, message: `${nameOf(path)} ${issue.message}, not ${describe(valueAt(value, path))}` }];
}

function explainUnknownKey(key: string, parent: Path, wording: Wording): readonly Complaint[] {
  const place = { path: [...parent, key], atKey: true } as const;
  const special = wording.unknownKey(key, parent);
  if (special === 'silent') return [];
  if (special) return [{ ...place, ...special }];
  const allowed = wording.keysAt(parent);
  const guess = nearest(key, allowed);
  const hint = guess
    ? `did you mean \`${guess}\`?`
    : allowed.length > 0
      ? `known keys: ${allowed.join(', ')}`
      : undefined;
  return [{ ...place, message: `unknown key \`${key}\``, hint }];
}

const missing = (path: Path): Complaint => ({
  path: path.slice(0, -1),
  message: `${ownerOf(path)} requires \`${String(path.at(-1))}\``,
});

function ownerOf(path: Path): string {
  const parent = path.slice(0, -1);
  if (parent.length === 0) return 'the file';
  return parent.length === 2 && parent[0] === 'steps' ? 'a step' : nameOf(parent);
}

/** Formats a path for people, such as `retry.attempts` or `needs[1]`. Omits the index of the step. */
function nameOf(path: Path): string {
  const inner = path[0] === 'steps' && typeof path[1] === 'number' ? path.slice(2) : path;
  if (inner.length === 0) return path.length === 0 ? 'the file' : 'a step';
  const joined = inner
    .map((key, index) => (typeof key === 'number' ? `[${key}]` : index === 0 ? key : `.${key}`))
    .join('');
  return `\`${joined}\``;
}

function valueAt(value: Json, path: Path): Json | undefined {
  let current: Json | undefined = value;
  for (const key of path) {
    if (Array.isArray(current) && typeof key === 'number') current = (current as readonly Json[])[key];
    else if (isJsonObject(current) && Object.hasOwn(current, key)) current = current[key];
    else return undefined;
  }
  return current;
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'a map',
  record: 'a map',
  array: 'a list',
};

function describe(value: Json | undefined): string {
  if (value === undefined || value === null) return 'empty';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a map';
  const shown = String(value);
  return `\`${shown.length > 40 ? `${shown.slice(0, 40)}…` : shown.replaceAll('\n', ' ')}\``;
}

const quoteHint = (expected: string, found: Json): string | undefined =>
  expected === 'string' && (typeof found === 'number' || typeof found === 'boolean')
    ? `put it in quotes: "${found}"`
    : undefined;

const listed = (values: readonly string[]): string =>
  values.length < 2 ? values.join('') : `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`;

/** Returns the keys that a JSON Schema lists at a path. Empty if any key is allowed. */
export function schemaKeys(schema: Json, path: Path): readonly string[] {
  let alternatives = unfold(schema);
  for (const key of path) alternatives = alternatives.flatMap(alternative => unfold(step(alternative, key)));
  const keys = alternatives.flatMap(({ properties }) =>
    isJsonObject(properties) ? Object.keys(properties) : [],
  );
  return [...new Set(keys)];
}

type JsonSchemaObject = { readonly [key: string]: Json | undefined };

function step(schema: JsonSchemaObject, key: string | number): Json | undefined {
  if (typeof key === 'number') return schema['items'];
  const properties = schema['properties'];
  return isJsonObject(properties) && Object.hasOwn(properties, key)
    ? properties[key]
    : schema['additionalProperties'];
}

function unfold(schema: Json | undefined): readonly JsonSchemaObject[] {
  if (!isJsonObject(schema)) return [];
  const { anyOf } = schema;
  return Array.isArray(anyOf) ? anyOf.flatMap(alternative => unfold(alternative)) : [schema];
}
