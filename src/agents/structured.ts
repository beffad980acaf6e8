import { type ErrorData, toErrorData } from '../core/errors.ts';
import { type Json, type JsonObject, toJson } from '../core/json.ts';

export type Structured =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly error: ErrorData };

const hint = 'say in the prompt what the answer must look like, or add `retry` to the step';

/**
 * The answer as data that fits the schema, checked by us whatever the agent says. If the agent gave none, the text is
 * searched: all of it, then its code fences from the last to the first. Otherwise OUTPUT_INVALID; never rejects.
 */
export async function structuredAnswer(options: {
  readonly schema: JsonObject;
  readonly given: Json | undefined;
  readonly text: string;
}): Promise<Structured> {
  // Loading the schema library takes a tenth of a second, and most sessions need none.
  const { compileOutputSchema } = await import('../workflow/yaml/schema-parts.ts');
  const compiled = compileOutputSchema(options.schema);
  if (compiled.kind === 'invalid') return invalid(`the output schema cannot be used: ${compiled.reason}`);
  const candidates = options.given === undefined ? candidatesIn(options.text) : [options.given];
  let problem: ErrorData | undefined;
  for (const candidate of candidates) {
    try {
      return { ok: true, value: toJson(compiled.parse(candidate)) };
    } catch (error) {
      problem ??= toErrorData(error);
    }
  }
  if (problem) return { ok: false, error: { ...problem, hint } };
  return invalid(
    `the agent answered without data, although the step declares an output\n${excerpt(options.text)}`,
  );
}

const candidatesIn = (text: string): readonly Json[] =>
  [text, ...fencedBlocks(text).toReversed()].flatMap(parse);

/** What stands between lines that begin with three backticks, up to a line that has nothing else. */
function fencedBlocks(text: string): readonly string[] {
  const blocks: string[] = [];
  let open: string[] | undefined;
  for (const line of text.split('\n')) {
    const isFence = /^ {0,3}```/.test(line);
    if (!open) open = isFence ? [] : undefined;
    else if (isFence && line.trim() === '```') {
      blocks.push(open.join('\n'));
      open = undefined;
    } else open.push(line);
  }
  return blocks;
}

function parse(text: string): readonly Json[] {
  try {
    return [JSON.parse(text) as Json];
  } catch {
    return [];
  }
}

const invalid = (message: string): Structured => ({
  ok: false,
  error: { code: 'OUTPUT_INVALID', message: message.trim(), hint },
});

const excerpt = (text: string): string => (text.length > 300 ? `${text.slice(0, 300)}…` : text);
