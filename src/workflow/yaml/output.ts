import type { JsonObject } from '../../core/json.ts';
import { compileOutputSchema } from './output-schema.ts';
import type { BodySite } from './site.ts';

/** The check that an `output` asks for; reports a schema that cannot be checked. */
export function compileOutput(
  schema: JsonObject,
  { source, problems, path }: BodySite,
): ((output: unknown) => unknown) | undefined {
  const compiled = compileOutputSchema(schema);
  if (compiled.kind === 'parser') return compiled.parse;
  problems.add(source, {
    path: [...path, 'output'],
    atKey: true,
    message: `\`output\` is not a JSON Schema that can be checked: ${compiled.reason}`,
  });
  return undefined;
}
