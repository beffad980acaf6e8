import { kindOf, type Reader, refuseKind } from '../../cases/manifest/reader.ts';
import { nearest } from '../../core/suggest.ts';
import type { Site } from './site.ts';

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
