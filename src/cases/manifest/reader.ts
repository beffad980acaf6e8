import { isRecord, type JsonObject, nearest, type Position } from '../../core/index.ts';
import type { Path, ProblemList } from '../../workflow/yaml/source/index.ts';
import type { TomlSource } from './toml.ts';

/** Reads a value of one shape, and describes the shape as a JSON Schema. */
export interface TomlReader<T> {
  readonly schema: JsonObject;
  /** Returns `undefined` if the value is invalid, after it has reported a problem at the site. */
  read(site: TomlSite): T | undefined;
}

type ValueKind = 'text' | 'number' | 'truth' | 'list' | 'table' | 'date';

const kindNames: Readonly<Record<ValueKind, string>> = {
  text: 'a string',
  number: 'a number',
  truth: 'true or false',
  list: 'a list',
  table: 'a table',
  date: 'a date',
};

export function kindOf(value: unknown): ValueKind {
  if (typeof value === 'string') return 'text';
  if (typeof value === 'number') return 'number';
  if (typeof value === 'boolean') return 'truth';
  if (Array.isArray(value)) return 'list';
  return value instanceof Date ? 'date' : 'table';
}

/** Describes a value in a message. */
export function describe(value: unknown): string {
  const kind = kindOf(value);
  if (kind === 'list' || kind === 'table' || kind === 'date') return kindNames[kind];
  if (kind !== 'text') return `\`${value}\``;
  const shown = String(value).replaceAll('\n', ' ');
  return `"${shown.length > 40 ? `${shown.slice(0, 40)}…` : shown}"`;
}

export function refuseKind(site: TomlSite, ...expected: readonly ValueKind[]): undefined {
  const found = kindOf(site.value);
  site.refuse(
    `must be ${alternatives(expected.map(kind => kindNames[kind]))}, not ${describe(site.value)}`,
    expected.length === 1 ? hintForKind(site, { expected: expected[0], found }) : undefined,
  );
}

function hintForKind(
  site: TomlSite,
  { expected, found }: { expected: ValueKind | undefined; found: ValueKind },
): string | undefined {
  if (expected === 'text' && ['number', 'truth', 'date'].includes(found)) return 'put it in quotes';
  const hasHeader = found === 'table' && site.written.startsWith('[');
  return expected === 'list' && hasHeader ? `write [[${site.path.join('.')}]]` : undefined;
}

const alternatives = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;

interface ValueRule<T> {
  /** Returns `undefined` for a valid value, else a predicate such as `must not be empty`. */
  readonly objection: (value: T) => string | undefined;
  readonly hint?: string | undefined;
  readonly schema?: JsonObject | undefined;
}

/** Adds a rule to a reader. */
export const ruled = <T>(
  reader: TomlReader<T>,
  { objection, hint, schema }: ValueRule<T>,
): TomlReader<T> => ({
  schema: { ...reader.schema, ...schema },
  read: site => {
    const value = reader.read(site);
    const problem = value === undefined ? undefined : objection(value);
    if (problem === undefined) return value;
    site.refuse(problem, hint);
    return undefined;
  },
});

/** Converts the value that a reader returns. `convert` returns `undefined` after it has reported a problem. */
export const mapped = <From, To>(
  reader: TomlReader<From>,
  convert: (value: From, site: TomlSite) => To | undefined,
): TomlReader<To> => ({
  schema: reader.schema,
  read: site => {
    const value = reader.read(site);
    return value === undefined ? undefined : convert(value, site);
  },
});

export const described = <T>(reader: TomlReader<T>, description: string): TomlReader<T> => ({
  ...reader,
  schema: { ...reader.schema, description },
});

export const anyText: TomlReader<string> = {
  schema: { type: 'string' },
  read: site => (typeof site.value === 'string' ? site.value : refuseKind(site, 'text')),
};

export const truth: TomlReader<boolean> = {
  schema: { type: 'boolean' },
  read: site => (typeof site.value === 'boolean' ? site.value : refuseKind(site, 'truth')),
};

const anyNumber: TomlReader<number> = {
  schema: { type: 'number' },
  read: site => (typeof site.value === 'number' ? site.value : refuseKind(site, 'number')),
};

export const text: TomlReader<string> = ruled(anyText, {
  objection: value => (value.trim() === '' ? 'must not be empty' : undefined),
  schema: { minLength: 1 },
});

/** Reads a string that matches `pattern`. `requirement` is the predicate of the message, such as `must be a commit`. */
export const textOf = (pattern: RegExp, requirement: string): TomlReader<string> =>
  ruled(anyText, {
    objection: value => {
      if (value === '') return 'must not be empty';
      return pattern.test(value) ? undefined : `${requirement}, not ${describe(value)}`;
    },
    schema: { pattern: pattern.source },
  });

export function whole(min: number, max?: number): TomlReader<number> {
  const range = max === undefined ? `of at least ${min}` : `from ${min} to ${max}`;
  return ruled(anyNumber, {
    objection: value =>
      Number.isSafeInteger(value) && value >= min && value <= (max ?? value)
        ? undefined
        : `must be an integer ${range}, not ${describe(value)}`,
    schema: { type: 'integer', minimum: min, ...(max === undefined ? {} : { maximum: max }) },
  });
}

export const positive: TomlReader<number> = ruled(anyNumber, {
  objection: value =>
    Number.isFinite(value) && value > 0 ? undefined : `must be a number above 0, not ${describe(value)}`,
  schema: { exclusiveMinimum: 0 },
});

export const oneOf = <const T extends string>(values: readonly T[]): TomlReader<T> => ({
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

/** Reads a list of at least `min` items, and leaves out invalid items. */
export const listOf = <T>(item: TomlReader<T>, { min = 0 } = {}): TomlReader<readonly T[]> => ({
  schema: { type: 'array', items: item.schema, ...(min > 0 ? { minItems: min } : {}) },
  read: site => {
    if (!Array.isArray(site.value)) return refuseKind(site, 'list');
    if (site.value.length < min) site.refuse('must not be empty');
    return site.value.map((_, index) => item.read(site.at(index))).filter(value => value !== undefined);
  },
});

/** Reads a table with arbitrary keys. `checkKey` reports invalid ones. */
export const mapOf = <T>(
  entry: TomlReader<T>,
  checkKey: (key: string, site: TomlSite) => void = () => {},
): TomlReader<Readonly<Record<string, T>>> => ({
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

/** Selects a reader by the kind of the value. */
export const byKind = <T>(readers: Partial<Record<ValueKind, TomlReader<T>>>): TomlReader<T> => ({
  schema: { anyOf: Object.values(readers).map(({ schema }) => schema) },
  read: site => {
    const reader = readers[kindOf(site.value)];
    return reader ? reader.read(site) : refuseKind(site, ...(Object.keys(readers) as ValueKind[]));
  },
});

export interface TableField<T> {
  readonly reader: TomlReader<T>;
  readonly isRequired: boolean;
  /** Value of a missing or invalid field. It lets the remaining fields be checked too. */
  readonly fallback: T;
}

export const required = <T>(reader: TomlReader<T>, fallback: T): TableField<T> => ({
  reader,
  isRequired: true,
  fallback,
});

export function optional<T>(reader: TomlReader<T>): TableField<T | undefined>;
export function optional<T>(reader: TomlReader<T>, fallback: T): TableField<T>;
export function optional<T>(reader: TomlReader<T>, fallback?: T): TableField<T | undefined> {
  return { reader, isRequired: false, fallback };
}

export type TableFields = Readonly<Record<string, TableField<unknown>>>;
export type ValuesOf<F extends TableFields> = {
  readonly [K in keyof F]: F[K] extends TableField<infer T> ? T : never;
};

interface TableShape<F extends TableFields, T> {
  readonly fields: F;
  /**
   * Converts the fields; returns `undefined` after it has reported a problem. With `hasUnknownKeys` a missing key is
   * probably misspelled, which has been reported already.
   */
  readonly build: (values: ValuesOf<F>, site: TomlSite, hasUnknownKeys: boolean) => T | undefined;
  /** Returns a hint for an unknown key that users are likely to write here. */
  readonly hintFor?: ((key: string) => string | undefined) | undefined;
}

/** Reads a table with fixed keys, and reports all others. */
export function table<const F extends TableFields, T>({
  fields,
  build,
  hintFor,
}: TableShape<F, T>): TomlReader<T> {
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

function readField(
  site: TomlSite,
  key: string,
  { reader, isRequired, fallback }: TableField<unknown>,
): unknown {
  if (site.has(key)) return reader.read(site.at(key)) ?? fallback;
  if (isRequired) site.object({ message: `${site.name} needs \`${key}\`` });
  return fallback;
}

interface UnknownKey {
  readonly key: string;
  readonly known: readonly string[];
  readonly hintFor: ((key: string) => string | undefined) | undefined;
}

function refuseUnknownKey(site: TomlSite, { key, known, hintFor }: UnknownKey): void {
  const guess = nearest(key, known);
  const hint = hintFor?.(key) ?? (guess ? `did you mean \`${guess}\`?` : `known keys: ${known.join(', ')}`);
  site.object({ message: `unknown key \`${key}\``, hint, atKey: true });
}

interface TomlObjection {
  readonly message: string;
  readonly hint?: string | undefined;
  /** Whether the carets point at the key instead of the value. */
  readonly atKey?: boolean | undefined;
}

/** A value of a case file with its position. Collects problems. */
export class TomlSite {
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

  at(key: string | number): TomlSite {
    return new TomlSite(this.#source, this.#problems, this.#inner(key), [...this.path, key]);
  }

  has(key: string): boolean {
    return this.#inner(key) !== undefined;
  }

  get position(): Position {
    return this.#source.positionOf(this.#source.range(this.path).start);
  }

  /** Whether the last key of the path is quoted in the file. */
  get hasQuotedKey(): boolean {
    return /["']/.test(this.#source.text.charAt(this.#source.keyRange(this.path).start));
  }

  /** Source text of the value; for a table with a header, the header; for dotted keys, the key. */
  get written(): string {
    const { start, end } = this.#source.range(this.path);
    return this.#source.text.slice(start, end);
  }

  /** Reports a problem with the name of the value as its subject: `predicate` is `must be a string`, for example. */
  refuse(predicate: string, hint?: string): void {
    this.object({ message: `${this.name} ${predicate}`, hint });
  }

  object({ message, hint, atKey = false }: TomlObjection): void {
    const range = atKey ? this.#source.keyRange(this.path) : this.#source.range(this.path);
    this.#problems.addText(this.#source, [{ ...range, message, hint }]);
  }

  /** Name of the value in messages: `expect.exit`, `args[1]`, or `a trigger` for an entry that the position identifies. */
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
  { table: ['multi', 'steps', anyIndex], name: 'an entry of `steps`' },
  { table: ['worker_test', 'workers', anyIndex], name: 'a worker' },
  { table: ['triggers', anyIndex], name: 'a trigger' },
  { table: ['invariants', anyIndex], name: 'an invariant' },
  { table: ['run'], name: '`run`' },
] as const;

const fits = (wanted: string | symbol, key: string | number | undefined): boolean =>
  wanted === anyIndex ? typeof key === 'number' : wanted === key;
