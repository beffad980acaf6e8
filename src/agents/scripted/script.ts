import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { RepriseError } from '../../core/index.ts';

const path = z.string().min(1).describe('A path inside the workspace.');
const only = <Shape extends z.ZodRawShape>(shape: Shape, description: string) =>
  z.strictObject(shape).describe(description);

const json = z.json();

/** One thing that a scripted agent does. Each has exactly one key. */
const scriptStepSchema = z.union(
  [
    only({ say: z.string() }, 'Says something.'),
    only({ think: z.string() }, 'Thinks something.'),
    only({ write: z.strictObject({ path, content: z.string() }) }, 'Writes a file.'),
    only({ append: z.strictObject({ path, content: z.string() }) }, 'Adds to the end of a file.'),
    only({ delete: path }, 'Deletes a file.'),
    only(
      { replace: z.strictObject({ path, from: z.string().min(1), to: z.string() }) },
      'Replaces the first occurrence of a text in a file; fails if there is none.',
    ),
    only({ run: z.string().min(1) }, 'Runs a shell command; fails if it does.'),
    only({ commit: z.string().min(1) }, 'Commits everything that has changed.'),
    only({ sleep: z.number().nonnegative() }, 'Waits, in milliseconds.'),
    only(
      { ask: z.strictObject({ tool: z.string().min(1), input: json.optional() }) },
      'Asks for permission.',
    ),
    only({ fail: z.string().min(1) }, 'Fails.'),
    only(
      { limit: z.strictObject({ resets_at: z.string().optional(), reason: z.string().optional() }) },
      'Runs into a limit.',
    ),
    only(
      { result: z.strictObject({ text: z.string().optional(), output: json.optional() }) },
      'Ends with a result.',
    ),
  ],
  'must be a step of a script: one of say, think, write, append, delete, replace, run, commit, sleep, ask, fail, limit and result',
);

/** What a scripted agent does, from top to bottom. */
export const scriptSchema = z.array(scriptStepSchema);

export type ScriptStep = z.infer<typeof scriptStepSchema>;
export type Script = readonly ScriptStep[];

/** A script as YAML or JSON. Throws INPUT_INVALID if it is none. */
export function parseScript(text: string): Script {
  const parsed = scriptSchema.safeParse(parseYaml(text));
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map(
    ({ path, message }) => `${['script', ...path].join('.')} ${message}`,
  );
  throw new RepriseError('INPUT_INVALID', issues.join('\n'));
}
