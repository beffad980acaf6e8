import type { z } from 'zod';
import { isJsonObject, type Json } from '../../../core/json.ts';
import { nearest } from '../../../core/suggest.ts';
import type { Complaint } from './problem-list.ts';
import type { Path } from './yaml-source.ts';

type Issue = z.core.$ZodIssue;

/** What a file says in general, and where one kind of file knows better. */
export interface Wording {
  /** Says what is special about a key that is not allowed at a path. `'silent'`: nothing needs to be said. */
  readonly unknownKey: (
    key: string,
    parent: Path,
  ) => { message: string; hint?: string | undefined } | 'silent' | undefined;
  /** What to say beside what does not fit at a path. */
  readonly hintAt?: (path: Path) => string | undefined;
  /** The keys that are allowed at a path, for suggestions. */
  readonly keysAt: (parent: Path) => readonly string[];
}

/** One sentence for each thing that does not fit the schema. */
export function explainIssues(issues: readonly Issue[], value: Json, wording: Wording): readonly Complaint[] {
  return issues.flatMap(issue => explainIssue(issue, value, wording));
}

function explainIssue(issue: Issue, value: Json, wording: Wording): readonly Complaint[] {
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
      // A schema that has its own words for a wrong type uses them; those of the library begin like this.
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

/** If the value is of the type of one alternative only, that alternative's own objections say most. */
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
  message: `${ownerOf(path)} needs \`${String(path.at(-1))}\``,
});

function ownerOf(path: Path): string {
  const parent = path.slice(0, -1);
  if (parent.length === 0) return 'the file';
  return parent.length === 2 && parent[0] === 'steps' ? 'a step' : nameOf(parent);
}

/** The way to a value as a person would say it: `retry.attempts`, `needs[1]`; steps are not numbered for people. */
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
  string: 'text',
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

/** The keys that a JSON Schema allows at a path; empty where anything goes. */
export function schemaKeys(schema: Json, path: Path): readonly string[] {
  let alternatives = unfold(schema);
  for (const key of path) alternatives = alternatives.flatMap(alternative => unfold(step(alternative, key)));
  const keys = alternatives.flatMap(({ properties }) =>
    isJsonObject(properties) ? Object.keys(properties) : [],
  );
  return [...new Set(keys)];
}

type Schema = { readonly [key: string]: Json | undefined };

function step(schema: Schema, key: string | number): Json | undefined {
  if (typeof key === 'number') return schema['items'];
  const properties = schema['properties'];
  return isJsonObject(properties) && Object.hasOwn(properties, key)
    ? properties[key]
    : schema['additionalProperties'];
}

function unfold(schema: Json | undefined): readonly Schema[] {
  if (!isJsonObject(schema)) return [];
  const { anyOf } = schema;
  return Array.isArray(anyOf) ? anyOf.flatMap(alternative => unfold(alternative)) : [schema];
}
