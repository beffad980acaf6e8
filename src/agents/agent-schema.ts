import { z } from 'zod';
import { parseDuration } from '../core/time.ts';
import { parseRule } from '../core/tools.ts';
import { agentKinds, presets } from './agent.ts';
import { scriptSchema } from './scripted/script.ts';

const rule = z
  .string()
  .refine(text => typeof parseRule(text) !== 'string', {
    error: issue => {
      const problem = parseRule(String(issue.input));
      return typeof problem === 'string' ? problem : 'is not a rule';
    },
  })
  .describe('A rule in the notation of Claude Code, such as `Bash(npm test)`.');

const duration = z
  .union([z.string(), z.number()])
  .refine(given => parseDuration(given) !== undefined, 'must be a duration such as `30s`, `5m` or `1h30m`');

const words = z.array(z.string().min(1));
const usd = z.number().nonnegative();

const inputName = z
  .string()
  .regex(
    /^[A-Za-z_][\w-]*$/,
    'is not a name for an input: begin with a letter or `_`, go on with letters, digits, `_` or `-`',
  );

const input = z.strictObject({
  description: z.string().optional().describe('What it is, for whoever has to give it.'),
  required: z.boolean().optional().describe('Whether nobody can hand over without it; true.'),
});

/** An agent as it is written in `reprise.yaml` and in the front matter of `.reprise/agents/<name>.md`. */
export const agentSchema = z
  .strictObject({
    kind: z.enum(agentKinds).describe('Which program it is, and how to talk to it.'),
    description: z
      .string()
      .min(1, 'must not be empty')
      .optional()
      .describe('What it is for. Agents that may hand over to it are shown this.'),
    inputs: z
      .record(inputName, input.nullable())
      .optional()
      .describe('What an agent that hands over to it has to say, by name.'),
    model: z.string().min(1).optional().describe('The model, in the words of the agent.'),
    permissions: z
      .enum(presets)
      .optional()
      .describe('What it may do: `read-only`, `edit` (inside its workspace; the default) or `full`.'),
    allow: z.array(rule).optional().describe('What it may do beyond that.'),
    deny: z.array(rule).optional().describe('What it must never do.'),
    command: words
      .min(1, 'must name a program')
      .optional()
      .describe('The program with its first arguments. `{prompt}` and `{prompt_file}` stand for the prompt.'),
    args: words.optional().describe('More arguments for the program.'),
    env: z.record(z.string(), z.string()).optional().describe('Environment variables for the program.'),
    system_prompt: z.string().optional().describe('What it is told before every prompt.'),
    max_concurrency: z
      .int()
      .min(1)
      .optional()
      .describe('How many of its sessions may run at the same time, across runs.'),
    timeout: duration.optional().describe('How long a session may take.'),
    stall_timeout: duration.optional().describe('How long it may be silent.'),
    script: scriptSchema.optional().describe('What a scripted agent does.'),
    script_file: z
      .string()
      .min(1)
      .optional()
      .describe('The same in a YAML or JSON file, relative to the workspace.'),
    price: z
      .strictObject({
        input_per_mtok: usd.describe('US dollars for a million tokens that it reads.'),
        output_per_mtok: usd.describe('US dollars for a million tokens that it writes.'),
      })
      .optional()
      .describe('What it costs, if it does not say so itself.'),
  })
  .meta({ title: 'Agent', description: 'Someone who does the work of a step.' });

export type WrittenAgent = z.infer<typeof agentSchema>;

/** The JSON Schema of an agent. */
export const agentJsonSchema = (): object => z.toJSONSchema(agentSchema, { io: 'input' });
