import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { RepriseError } from '../../core/index.ts';

const path = z.string().min(1).describe('A path inside the workspace.');
const only = <Shape extends z.ZodRawShape>(shape: Shape, description: string) =>
  z.strictObject(shape).describe(description);

const json = z.json();

/** One step of a scripted agent, with exactly one key. */
const scriptStepSchema = z.union(
  [
    only({ say: z.string() }, 'Emits a message.'),
    only({ think: z.string() }, 'Emits a thought.'),
    only({ write: z.strictObject({ path, content: z.string() }) }, 'Writes a file.'),
    only({ append: z.strictObject({ path, content: z.string() }) }, 'Appends to a file.'),
    only({ delete: path }, 'Deletes a file.'),
    only(
      { replace: z.strictObject({ path, from: z.string().min(1), to: z.string() }) },
      'Replaces the first occurrence of a string in a file. Fails if there is none.',
    ),
    only({ run: z.string().min(1) }, 'Runs a shell command. Fails if the command fails.'),
    only({ commit: z.string().min(1) }, 'Commits all changes.'),
    only({ sleep: z.number().nonnegative() }, 'Waits for a number of milliseconds.'),
    only(
      { ask: z.strictObject({ tool: z.string().min(1), input: json.optional() }) },
      'Asks for permission to use a tool.',
    ),
    only({ fail: z.string().min(1) }, 'Fails with a message.'),
    only(
      { limit: z.strictObject({ resets_at: z.string().optional(), reason: z.string().optional() }) },
      'Reports a rate limit.',
    ),
    only(
      { result: z.strictObject({ text: z.string().optional(), output: json.optional() }) },
      'Ends with a result.',
    ),
  ],
  'must be a step of a script: one of say, think, write, append, delete, replace, run, commit, sleep, ask, fail, limit and result',
);

/** Steps of a scripted agent, in order. */
export const scriptSchema = z.array(scriptStepSchema);

export type ScriptStep = z.infer<typeof scriptStepSchema>;
export type Script = readonly ScriptStep[];

/** Parses a script in YAML or JSON. Throws INPUT_INVALID. */
export function parseScript(text: string): Script {
  const parsed = scriptSchema.safeParse(parseYaml(text));
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map(
    ({ path, message }) => `${['script', ...path].join('.')} ${message}`,
  );
  throw new RepriseError('INPUT_INVALID', issues.join('\n'));
}
