import { z } from 'zod';
import { RepriseError } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';

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
