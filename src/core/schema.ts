/**
 * Validation of maps with a fixed set of fields, for data that is read at startup: importing zod and running its
 * first checks takes 150 ms.
 */
export type Fields = readonly Field[];

/** Unknown fields: an error, or fields of a newer version. */
export type UnknownFields = 'reject' | 'accept';

export interface SchemaRule {
  readonly expected: string;
  /** `unknown` applies to the maps inside the value. */
  readonly holds: (value: unknown, unknown?: UnknownFields) => boolean;
}

interface Field extends SchemaRule {
  readonly key: string;
  readonly optional: boolean;
}

export const isName = (value: unknown): value is string => typeof value === 'string' && value !== '';

export const json: SchemaRule = {
  expected: 'a value',
  // JSON has no text for the other types, so the field would be missing after it was stored.
  holds: value => value !== undefined && typeof value !== 'function' && typeof value !== 'symbol',
};
export const text: SchemaRule = { expected: 'a string', holds: value => typeof value === 'string' };
export const name: SchemaRule = { expected: 'a non-empty string', holds: isName };
export const names: SchemaRule = {
  expected: 'a list of non-empty strings',
  holds: value => Array.isArray(value) && value.every(isName),
};
export const texts: SchemaRule = {
  expected: 'a map of strings',
  // zod ignores `__proto__`.
  holds: value =>
    isRecord(value) &&
    Object.entries(value).every(([key, each]) => typeof each === 'string' || key === '__proto__'),
};
export const truth: SchemaRule = { expected: 'true or false', holds: value => typeof value === 'boolean' };
export const number: SchemaRule = { expected: 'a number', holds: value => Number.isFinite(value) };

export const numberFrom = (least: number): SchemaRule => ({
  expected: `a number from ${least}`,
  holds: value => Number.isFinite(value) && Number(value) >= least,
});

export const wholeFrom = (least: number): SchemaRule => ({
  expected: `a whole number from ${least}`,
  holds: value => Number.isSafeInteger(value) && Number(value) >= least,
});

export const oneOf = (...values: readonly unknown[]): SchemaRule => ({
  expected: `one of ${values.join(', ')}`,
  holds: value => values.includes(value),
});

export const list = ({ expected, holds }: SchemaRule): SchemaRule => ({
  expected: `a list, each ${expected}`,
  holds: (value, unknown) => Array.isArray(value) && value.every(each => holds(each, unknown)),
});

export const map = (known: Fields): SchemaRule => ({
  expected: 'a map with the right fields',
  holds: (value, unknown) => firstProblem(known, value, { unknown }) === undefined,
});

type Rules = Readonly<Record<string, SchemaRule>>;

export const fields = (required: Rules, optional: Rules = {}): Fields => [
  ...Object.entries(required).map(([key, rule]) => ({ key, optional: false, ...rule })),
  ...Object.entries(optional).map(([key, rule]) => ({ key, optional: true, ...rule })),
];

interface CheckOptions {
  /** Put before the name of a field. */
  readonly path?: string;
  /** Defaults to `reject`. */
  readonly unknown?: UnknownFields | undefined;
}

/** Describes the first field that is missing, wrong or unknown, if there is one. */
export function firstProblem(
  known: Fields,
  value: unknown,
  { path = '', unknown = 'reject' }: CheckOptions = {},
): string | undefined {
  if (!isRecord(value)) return `${path.slice(0, -1)}: expected a map`;
  let absent = 0;
  for (const field of known) {
    const { key } = field;
    const given = value[key];
    if (given === undefined && field.optional) absent += Object.hasOwn(value, key) ? 0 : 1;
    else if (!field.holds(given, unknown)) return `${path}${key}: expected ${field.expected}`;
  }
  if (unknown === 'accept' || countKeys(value) === known.length - absent) return undefined;
  const other = Object.keys(value).find(key => known.every(field => field.key !== key));
  return `${path}${other}: unknown field`;
}

/** Avoids `Object.keys`, which would allocate a list for each of many thousand events. */
function countKeys(value: Readonly<Record<string, unknown>>): number {
  let count = 0;
  for (const key in value) if (Object.hasOwn(value, key)) count++;
  return count;
}

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns what is wrong with the path of a file in `folder`, as a predicate; `undefined` if it is valid. */
export function objectToPath(path: string, folder: string): string | undefined {
  if (path.includes('\0')) return 'must not contain a NUL character';
  if (/^(\/|~|[a-z]:)/i.test(path)) return `must be relative to ${folder}`;
  if (path.includes('\\')) return 'must separate folders with /';
  const parts = path.split('/');
  if (parts.includes('..')) return `must stay inside ${folder}`;
  if (parts.some(part => part.toLowerCase() === '.git')) return 'must not be inside .git';
  if (parts.some(part => part === '' || part === '.')) return 'must name a file, without empty or `.` parts';
  return undefined;
}
