import { RepriseError } from '../../core/errors.ts';
import { parseWith, type Schema } from './schema.ts';

type Nothing = ReturnType<() => void>;

/** An output as history gives it back: nothing is stored as `null`. */
export type Stored<T> = T extends Nothing ? null : T;

type Primitive = string | number | bigint | boolean | symbol | null | undefined;

/** The same type for reading, so that what was inferred as constant fits too. */
export type DeepReadonly<T> = unknown extends T
  ? T
  : T extends Primitive | ((...args: never) => unknown)
    ? T
    : T extends readonly (infer Item)[]
      ? number extends T['length']
        ? ReadonlyList<Item>
        : { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
      : { readonly [Key in keyof T]: DeepReadonly<T[Key]> };

/** An interface is resolved only when needed: the type of all JSON would have no end otherwise. */
export interface ReadonlyList<Item> extends ReadonlyArray<DeepReadonly<Item>> {}

/** Checks an output against the schema of its step; throws OUTPUT_INVALID with every issue in one line. */
export function outputParser(schema: Schema | undefined): ((output: unknown) => unknown) | undefined {
  if (!schema) return undefined;
  return output => {
    const outcome = parseWith({ schema, value: output, root: 'output' });
    if (outcome.kind === 'parsed') return outcome.value;
    throw new RepriseError('OUTPUT_INVALID', outcome.issues.join('; '), { cause: outcome.cause });
  };
}
