import { z } from 'zod';
import { parseDuration, parseRule } from '../core/index.ts';
import { type Script, scriptSchema } from './scripted/script.ts';

const agentKinds = ['claude', 'codex', 'acp', 'command', 'scripted'] as const;
export type AgentKind = (typeof agentKinds)[number];

const presets = ['read-only', 'edit', 'full'] as const;
/** What an agent may do without being asked about it one by one. */
export type Preset = (typeof presets)[number];

/** A value that an agent has to be given when the work is handed over to it. */
export interface AgentInput {
  readonly description?: string | undefined;
  readonly required: boolean;
}

/** An agent as `reprise.yaml` or `.reprise/agents/<name>.md` defines it. */
export interface AgentDefinition {
  readonly name: string;
  readonly kind: AgentKind;
  /** What it is for, in the words that other agents choose it by. */
  readonly description?: string | undefined;
  /** What whoever hands over to it has to tell it, by name. */
  readonly inputs?: Readonly<Record<string, AgentInput>> | undefined;
  readonly model?: string | undefined;
  readonly permissions: Preset;
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  /** The program with its first arguments, if it is not the usual one of its kind. */
  readonly command?: readonly string[] | undefined;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly systemPrompt?: string | undefined;
  /** How many sessions may run at the same time, across runs. */
  readonly maxConcurrency?: number | undefined;
  /** For a whole session. */
  readonly timeoutMs?: number | undefined;
  /** For silence. */
  readonly stallTimeoutMs?: number | undefined;
  readonly script?: Script | undefined;
  /** Relative to the workspace. */
  readonly scriptFile?: string | undefined;
  /** US dollars for a million tokens, for agents that do not say what they cost. */
  readonly price?: { readonly inputPerMtok: number; readonly outputPerMtok: number } | undefined;
}

/** Agents by name. */
export type AgentDefinitions = ReadonlyMap<string, AgentDefinition>;

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

/** Something that does not go together, at its key. */
interface KeyProblem {
  readonly key?: keyof WrittenAgent | undefined;
  /** One of the names below the key. */
  readonly name?: string | undefined;
  readonly message: string;
  readonly hint?: string | undefined;
}

const onlyFor: Readonly<Partial<Record<keyof WrittenAgent, { kinds: readonly AgentKind[]; hint: string }>>> =
  {
    model: { kinds: ['claude', 'codex'], hint: 'say it under `args`, in the words of the program' },
    permissions: {
      kinds: ['claude', 'codex', 'acp', 'scripted'],
      hint: 'nothing can hold such a program back: remove the key, or use another kind of agent',
    },
    allow: { kinds: ['claude', 'codex', 'acp', 'scripted'], hint: 'nothing asks before such a program acts' },
    deny: { kinds: ['claude', 'codex', 'acp', 'scripted'], hint: 'nothing asks before such a program acts' },
    command: { kinds: ['claude', 'codex', 'acp', 'command'], hint: 'use `run` in the script' },
    args: { kinds: ['claude', 'codex', 'acp', 'command'], hint: 'use `run` in the script' },
    stall_timeout: {
      kinds: ['claude', 'codex', 'acp', 'command'],
      hint: 'a script is never silent by mistake',
    },
    script: { kinds: ['scripted'], hint: 'write `kind: scripted`' },
    script_file: { kinds: ['scripted'], hint: 'write `kind: scripted`' },
  };

/** What the shape alone does not forbid. */
export function agentProblems(agent: WrittenAgent): readonly KeyProblem[] {
  const { kind } = agent;
  const misplaced = Object.entries(onlyFor).flatMap(([name, { kinds, hint }]) => {
    const key = name as keyof WrittenAgent;
    if (agent[key] === undefined || kinds.includes(kind)) return [];
    return [{ key, message: `\`${key}\` means nothing for \`kind: ${kind}\``, hint }];
  });
  return [...misplaced, ...missing(agent), ...takenNames(agent)];
}

/** What `<next>` says itself, beside the inputs of the agent that it names. */
const wordsOfNext: ReadonlySet<string> = new Set(['agent', 'task', 'land', 'sleep', 'give-up', 'give_up']);

const takenNames = ({ inputs = {} }: WrittenAgent): readonly KeyProblem[] =>
  Object.keys(inputs)
    .filter(name => wordsOfNext.has(name))
    .map(name => ({
      key: 'inputs',
      name,
      message: `an input cannot be called \`${name}\`, which has a meaning of its own in \`<next>\``,
      hint: 'give it another name',
    }));

function missing({ kind, command, script, script_file }: WrittenAgent): readonly KeyProblem[] {
  if ((kind === 'acp' || kind === 'command') && command === undefined) {
    const example = kind === 'acp' ? '["gemini", "--acp"]' : '["node", "agent.js"]';
    return [{ message: `\`kind: ${kind}\` needs \`command\``, hint: `for example: command: ${example}` }];
  }
  if (kind !== 'scripted') return [];
  if (script !== undefined && script_file !== undefined)
    return [{ key: 'script_file', message: '`script` and `script_file` exclude each other' }];
  if (script === undefined && script_file === undefined)
    return [
      {
        message: '`kind: scripted` needs `script` or `script_file`',
        hint: 'for example: script: [{ say: "hello" }]',
      },
    ];
  return [];
}
