import type { JsonObject } from '../../core/json.ts';
import { nearest } from '../../core/suggest.ts';
import type { Site } from '../../testing/manifest/site.ts';

/** Reads a value of one shape, and says what that shape is. */
export interface Reader<T> {
  readonly schema: JsonObject;
  /** `undefined` after it has objected, at the site, to what does not fit. */
  read(site: Site): T | undefined;
}

type Kind = 'text' | 'number' | 'truth' | 'list' | 'table' | 'date';

const kindNames: Readonly<Record<Kind, string>> = {
  text: 'a text',
  number: 'a number',
  truth: 'true or false',
  list: 'a list',
  table: 'a table',
  date: 'a date',
};

export function kindOf(value: unknown): Kind {
  if (typeof value === 'string') return 'text';
  if (typeof value === 'number') return 'number';
  if (typeof value === 'boolean') return 'truth';
  if (Array.isArray(value)) return 'list';
  return value instanceof Date ? 'date' : 'table';
}

/** A value as a person would name it. */
export function describe(value: unknown): string {
  const kind = kindOf(value);
  if (kind === 'list' || kind === 'table' || kind === 'date') return kindNames[kind];
  if (kind !== 'text') return `\`${value}\``;
  const shown = String(value).replaceAll('\n', ' ');
  return `"${shown.length > 40 ? `${shown.slice(0, 40)}…` : shown}"`;
}

export function refuseKind(site: Site, ...expected: readonly Kind[]): undefined {
  const found = kindOf(site.value);
  site.refuse(
    `must be ${alternatives(expected.map(kind => kindNames[kind]))}, not ${describe(site.value)}`,
    expected.length === 1 ? hintForKind(site, { expected: expected[0], found }) : undefined,
  );
}

function hintForKind(
  site: Site,
  { expected, found }: { expected: Kind | undefined; found: Kind },
): string | undefined {
  if (expected === 'text' && ['number', 'truth', 'date'].includes(found)) return 'put it in quotes';
  const hasHeader = found === 'table' && site.written.startsWith('[');
  return expected === 'list' && hasHeader ? `write [[${site.path.join('.')}]]` : undefined;
}

const alternatives = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;

interface Rule<T> {
  /** `undefined` if the value is right, else the rest of a sentence that begins with its name. */
  readonly objection: (value: T) => string | undefined;
  readonly hint?: string | undefined;
  readonly schema?: JsonObject | undefined;
}

/** Asks more of a value than its kind. */
export const ruled = <T>(reader: Reader<T>, { objection, hint, schema }: Rule<T>): Reader<T> => ({
  schema: { ...reader.schema, ...schema },
  read: site => {
    const value = reader.read(site);
    const wrong = value === undefined ? undefined : objection(value);
    if (wrong === undefined) return value;
    site.refuse(wrong, hint);
    return undefined;
  },
});

/** Makes something else of what was read; `undefined` if it objects. */
export const mapped = <From, To>(
  reader: Reader<From>,
  convert: (value: From, site: Site) => To | undefined,
): Reader<To> => ({
  schema: reader.schema,
  read: site => {
    const value = reader.read(site);
    return value === undefined ? undefined : convert(value, site);
  },
});

export const described = <T>(reader: Reader<T>, description: string): Reader<T> => ({
  ...reader,
  schema: { ...reader.schema, description },
});

export const anyText: Reader<string> = {
  schema: { type: 'string' },
  read: site => (typeof site.value === 'string' ? site.value : refuseKind(site, 'text')),
};

export const truth: Reader<boolean> = {
  schema: { type: 'boolean' },
  read: site => (typeof site.value === 'boolean' ? site.value : refuseKind(site, 'truth')),
};

const anyNumber: Reader<number> = {
  schema: { type: 'number' },
  read: site => (typeof site.value === 'number' ? site.value : refuseKind(site, 'number')),
};

export const text: Reader<string> = ruled(anyText, {
  objection: value => (value.trim() === '' ? 'must not be empty' : undefined),
  schema: { minLength: 1 },
});

/** `says` is what the name of a value that does not fit is followed by. */
export const textOf = (pattern: RegExp, says: string): Reader<string> =>
  ruled(anyText, {
    objection: value => {
      if (value === '') return 'must not be empty';
      return pattern.test(value) ? undefined : `${says}, not ${describe(value)}`;
    },
    schema: { pattern: pattern.source },
  });

export function whole(least: number, most?: number): Reader<number> {
  const range = most === undefined ? `from ${least}` : `from ${least} to ${most}`;
  return ruled(anyNumber, {
    objection: value =>
      Number.isSafeInteger(value) && value >= least && value <= (most ?? value)
        ? undefined
        : `must be a whole number ${range}, not ${describe(value)}`,
    schema: { type: 'integer', minimum: least, ...(most === undefined ? {} : { maximum: most }) },
  });
}

export const positive: Reader<number> = ruled(anyNumber, {
  objection: value =>
    Number.isFinite(value) && value > 0 ? undefined : `must be a number above 0, not ${describe(value)}`,
  schema: { exclusiveMinimum: 0 },
});

export const oneOf = <const T extends string>(values: readonly T[]): Reader<T> => ({
  schema: { enum: values },
  read: site => {
    const found = values.find(value => value === site.value);
    if (found !== undefined) return found;
    const guess = typeof site.value === 'string' ? nearest(site.value, values) : undefined;
    site.refuse(
      `must be ${alternatives(values.map(value => `"${value}"`))}, not ${describe(site.value)}`,
      guess && `did you mean "${guess}"?`,
    );
    return undefined;
  },
});

/** Items that were objected to are left out. */
export const listOf = <T>(item: Reader<T>, { least = 0 } = {}): Reader<readonly T[]> => ({
  schema: { type: 'array', items: item.schema, ...(least > 0 ? { minItems: least } : {}) },
  read: site => {
    if (!Array.isArray(site.value)) return refuseKind(site, 'list');
    if (site.value.length < least) site.refuse('must not be empty');
    return site.value.map((_, index) => item.read(site.at(index))).filter(value => value !== undefined);
  },
});

/** A table with keys of the author's own. `checkKey` objects to keys. */
export const mapOf = <T>(
  entry: Reader<T>,
  checkKey: (key: string, site: Site) => void = () => {},
): Reader<Readonly<Record<string, T>>> => ({
  schema: { type: 'object', additionalProperties: entry.schema },
  read: site => {
    if (kindOf(site.value) !== 'table') return refuseKind(site, 'table');
    const entries: [string, T][] = [];
    for (const key of Object.keys(site.value as object)) {
      const inner = site.at(key);
      checkKey(key, inner);
      const value = entry.read(inner);
      if (value !== undefined) entries.push([key, value]);
    }
    return Object.fromEntries(entries);
  },
});

/** Chooses a reader by what was written. */
export const byKind = <T>(readers: Partial<Record<Kind, Reader<T>>>): Reader<T> => ({
  schema: { anyOf: Object.values(readers).map(({ schema }) => schema) },
  read: site => {
    const reader = readers[kindOf(site.value)];
    return reader ? reader.read(site) : refuseKind(site, ...(Object.keys(readers) as Kind[]));
  },
});
