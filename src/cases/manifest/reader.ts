import type { Position } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';
import { isRecord } from '../../core/schema.ts';
import { nearest } from '../../core/suggest.ts';
import type { ProblemList } from '../../workflow/yaml/source/problem-list.ts';
import type { Path } from '../../workflow/yaml/source/yaml-source.ts';
import type { TomlSource } from './toml.ts';

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

export interface Field<T> {
  readonly reader: Reader<T>;
  readonly isRequired: boolean;
  /** Stands for what was not written, or objected to, so that the rest is checked as well. */
  readonly otherwise: T;
}

export const required = <T>(reader: Reader<T>, otherwise: T): Field<T> => ({
  reader,
  isRequired: true,
  otherwise,
});

export function optional<T>(reader: Reader<T>): Field<T | undefined>;
export function optional<T>(reader: Reader<T>, otherwise: T): Field<T>;
export function optional<T>(reader: Reader<T>, otherwise?: T): Field<T | undefined> {
  return { reader, isRequired: false, otherwise };
}

export type Fields = Readonly<Record<string, Field<unknown>>>;
export type ValuesOf<F extends Fields> = {
  readonly [K in keyof F]: F[K] extends Field<infer T> ? T : never;
};

interface TableOptions<F extends Fields, T> {
  readonly fields: F;
  /** Makes of the fields what the table stands for; `undefined` if it objects. What is missing may be what was misspelt. */
  readonly build: (values: ValuesOf<F>, site: Site, hasUnknownKeys: boolean) => T | undefined;
  /** What to do about a key that people write here and that is none. */
  readonly hintFor?: ((key: string) => string | undefined) | undefined;
}

/** A table whose every key is known. */
export function table<const F extends Fields, T>({ fields, build, hintFor }: TableOptions<F, T>): Reader<T> {
  const entries = Object.entries(fields);
  const needed = entries.filter(([, { isRequired }]) => isRequired).map(([key]) => key);
  return {
    schema: {
      type: 'object',
      properties: Object.fromEntries(entries.map(([key, { reader }]) => [key, reader.schema])),
      ...(needed.length > 0 ? { required: needed } : {}),
      additionalProperties: false,
    },
    read: site => {
      if (kindOf(site.value) !== 'table') return refuseKind(site, 'table');
      const unknown = Object.keys(site.value as object).filter(key => !Object.hasOwn(fields, key));
      for (const key of unknown) refuseUnknownKey(site.at(key), { key, known: Object.keys(fields), hintFor });
      const values = entries.map(([key, field]) => [key, readField(site, key, field)]);
      return build(Object.fromEntries(values) as ValuesOf<F>, site, unknown.length > 0);
    },
  };
}

function readField(site: Site, key: string, { reader, isRequired, otherwise }: Field<unknown>): unknown {
  if (site.has(key)) return reader.read(site.at(key)) ?? otherwise;
  if (isRequired) site.object({ message: `${site.name} needs \`${key}\`` });
  return otherwise;
}

interface UnknownKey {
  readonly key: string;
  readonly known: readonly string[];
  readonly hintFor: ((key: string) => string | undefined) | undefined;
}

function refuseUnknownKey(site: Site, { key, known, hintFor }: UnknownKey): void {
  const guess = nearest(key, known);
  const hint = hintFor?.(key) ?? (guess ? `did you mean \`${guess}\`?` : `known keys: ${known.join(', ')}`);
  site.object({ message: `unknown key \`${key}\``, hint, atKey: true });
}

interface Objection {
  readonly message: string;
  readonly hint?: string | undefined;
  /** Points at the key and not at the value. */
  readonly atKey?: boolean | undefined;
}

/** A value at its place in a case file. */
export class Site {
  readonly value: unknown;
  readonly path: Path;
  readonly #source: TomlSource;
  readonly #problems: ProblemList;

  constructor(source: TomlSource, problems: ProblemList, value: unknown, path: Path = []) {
    this.#source = source;
    this.#problems = problems;
    this.value = value;
    this.path = path;
  }

  at(key: string | number): Site {
    return new Site(this.#source, this.#problems, this.#inner(key), [...this.path, key]);
  }

  has(key: string): boolean {
    return this.#inner(key) !== undefined;
  }

  get position(): Position {
    return this.#source.positionOf(this.#source.range(this.path).start);
  }

  /** Whether the key that the path ends with stands in quotes. */
  get hasQuotedKey(): boolean {
    return /["']/.test(this.#source.text.charAt(this.#source.keyRange(this.path).start));
  }

  /** The value as it stands in the file; of a table below a header, the header, and of dotted keys, the key. */
  get written(): string {
    const { start, end } = this.#source.range(this.path);
    return this.#source.text.slice(start, end);
  }

  /** `what` follows the name of the value: `must be a text`. */
  refuse(what: string, hint?: string): void {
    this.object({ message: `${this.name} ${what}`, hint });
  }

  object({ message, hint, atKey = false }: Objection): void {
    const range = atKey ? this.#source.keyRange(this.path) : this.#source.range(this.path);
    this.#problems.addText(this.#source, [{ ...range, message, hint }]);
  }

  /** The way to the value as a person would say it: `expect.exit`, `args[1]`; what has a place of its own is not numbered. */
  get name(): string {
    const { owner, inner } = this.#split();
    if (inner.length === 0) return owner;
    const joined = inner
      .map((key, index) => (typeof key === 'number' ? `[${key}]` : index === 0 ? key : `.${key}`))
      .join('');
    return `\`${joined}\``;
  }

  #split(): { readonly owner: string; readonly inner: Path } {
    const owner = owners.find(({ table }) => table.every((key, index) => fits(key, this.path[index])));
    return owner
      ? { owner: owner.name, inner: this.path.slice(owner.table.length) }
      : { owner: 'the file', inner: this.path };
  }

  #inner(key: string | number): unknown {
    if (Array.isArray(this.value)) return this.value[Number(key)];
    return isRecord(this.value) && Object.hasOwn(this.value, key) ? this.value[key] : undefined;
  }
}

const anyIndex = Symbol('any index');

const owners = [
  { table: ['multi', 'steps', anyIndex], name: 'a step' },
  { table: ['worker_test', 'workers', anyIndex], name: 'a worker' },
  { table: ['triggers', anyIndex], name: 'a trigger' },
  { table: ['invariants', anyIndex], name: 'an invariant' },
  { table: ['run'], name: '`run`' },
] as const;

const fits = (wanted: string | symbol, key: string | number | undefined): boolean =>
  wanted === anyIndex ? typeof key === 'number' : wanted === key;
