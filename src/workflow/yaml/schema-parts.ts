import { z } from 'zod';
import { RepriseError } from '../../core/errors.ts';
import type { Json, JsonObject } from '../../core/json.ts';

/** What the keys of workflow files are made of. Messages are the second half of a sentence that begins with the key. */

/** What was read from YAML is JSON already: nothing is left to check. */
export const json = z.unknown() as unknown as z.ZodType<Json>;
export const text = z.string();
export const someText = z.string().min(1, 'must not be empty');

export const identifier = z
  .string()
  .regex(
    /^[A-Za-z_][A-Za-z0-9_-]*$/,
    'must begin with a letter or `_` and go on with letters, digits, `_` or `-`',
  );

export const withUnit = (input: unknown): string | undefined =>
  typeof input === 'number' ? `must be a duration with a unit, such as \`${input}s\`` : undefined;

export const duration = z
  .string({ error: ({ input }) => withUnit(input) })
  .regex(/^(\d+(\.\d+)?(ms|s|m|h|d))+$/, 'must be a duration such as `250ms`, `30s`, `5m` or `1h30m`');

export const positiveInteger = z.int().min(1);

export const environment = z
  .record(
    z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is not a name for an environment variable'),
    z.union([text, z.number(), z.boolean(), z.null()], 'must be text, a number, true or false'),
  )
  .describe('Environment variables. Values may contain `${{ }}`.');

export const commands = z.union(
  [someText, z.array(someText).min(1, 'must hold at least one command')],
  'must be a command, or a list of commands',
);

export const spendingLimits = {
  cost_usd: z.number().positive().optional().describe('What agents may cost, in US dollars.'),
  tokens: positiveInteger.optional().describe('How many tokens agents may read and write.'),
};

type CompiledOutput =
  | { readonly kind: 'parser'; readonly parse: (output: unknown) => unknown }
  | { readonly kind: 'invalid'; readonly reason: string };

const shownIssues = 5;

/** A check of outputs against a JSON Schema. The check throws OUTPUT_INVALID. */
export function compileOutputSchema(schema: JsonObject): CompiledOutput {
  try {
    const checker = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
    return { kind: 'parser', parse: output => check(checker, output) };
  } catch (error) {
    return { kind: 'invalid', reason: error instanceof Error ? error.message : String(error) };
  }
}

function check(checker: z.ZodType, output: unknown): unknown {
  const parsed = checker.safeParse(output);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues
    .slice(0, shownIssues)
    .map(({ path, message }) => `${['output', ...path].join('.')}: ${message}`);
  const more = parsed.error.issues.length - issues.length;
  const all = [...issues, ...(more > 0 ? [`and ${more} more`] : [])];
  throw new RepriseError('OUTPUT_INVALID', `the output does not fit its schema\n${all.join('\n')}`);
}
