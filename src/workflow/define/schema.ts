import { toErrorData } from '../../core/errors.ts';

/**
 * What Reprise asks of a schema: any zod 4 schema has it, of whichever copy or flavour of zod.
 * Stated here so that importing the API does not load zod.
 */
export interface Schema<Output = unknown, Input = unknown> {
  readonly _zod: { readonly output: Output; readonly input: Input };
  safeParse(value: unknown): SchemaResult<Output>;
}

export type SchemaResult<Output> =
  | { readonly success: true; readonly data: Output }
  | { readonly success: false; readonly error: { readonly issues: readonly SchemaIssue[] } };

export interface SchemaIssue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

export type ParseOutcome<Output> =
  | { readonly kind: 'parsed'; readonly value: Output }
  /** One line each, such as `output.files[0]: Invalid input`. */
  | { readonly kind: 'refused'; readonly issues: readonly string[]; readonly cause?: unknown };

export interface Parsing<Output> {
  readonly schema: Schema<Output>;
  readonly value: unknown;
  /** What issues call the value. */
  readonly root: string;
}

/** Never throws: a transform that throws, or a schema that can only be parsed asynchronously, is a refusal too. */
export function parseWith<Output>({ schema, value, root }: Parsing<Output>): ParseOutcome<Output> {
  try {
    const result = schema.safeParse(value);
    if (result.success) return { kind: 'parsed', value: result.data };
    const issues = result.error.issues.map(({ path, message }) => `${formatPath(root, path)}: ${message}`);
    return { kind: 'refused', issues };
  } catch (thrown) {
    return { kind: 'refused', issues: [`${root}: ${toErrorData(thrown).message}`], cause: thrown };
  }
}

function formatPath(root: string, path: readonly PropertyKey[]): string {
  return root + path.map(key => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
}
