import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { parseDuration, parseRule, RepriseError } from '../core/index.ts';
import { appServerArguments, unsupportedArgument } from './codex/arguments.ts';

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
const scriptSchema = z.array(scriptStepSchema);

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

const agentKinds = ['claude', 'codex', 'acp', 'command', 'scripted'] as const;
export type AgentKind = (typeof agentKinds)[number];

const presets = ['read-only', 'edit', 'full'] as const;
/** Level of access that an agent has without asking for each action. */
export type Preset = (typeof presets)[number];

/** Value that another agent passes when it hands work over to this agent. */
export interface AgentInput {
  readonly description?: string | undefined;
  readonly required: boolean;
}

/** Definition of an agent, from `reprise.yaml` or `.reprise/agents/<name>.md`. */
export interface AgentDefinition {
  readonly name: string;
  readonly kind: AgentKind;
  /** Purpose of the agent. Other agents choose it by this text. */
  readonly description?: string | undefined;
  /** Inputs that another agent passes when it hands work over, by name. */
  readonly inputs?: Readonly<Record<string, AgentInput>> | undefined;
  readonly model?: string | undefined;
  readonly permissions: Preset;
  /** Whether the definition sets `permissions`, `allow` or `deny`. */
  readonly isRestricted?: boolean | undefined;
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  /** `allow` if sessions may change the repository outside their workspace. Otherwise they fail. */
  readonly escapes?: 'allow' | 'fail' | undefined;
  /** Program and first arguments. Defaults to the usual program of the kind. */
  readonly command?: readonly string[] | undefined;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly systemPrompt?: string | undefined;
  /** Maximum number of parallel sessions, across runs. */
  readonly maxConcurrency?: number | undefined;
  /** Timeout of a whole session. */
  readonly timeoutMs?: number | undefined;
  /** Maximum time without output. */
  readonly stallTimeoutMs?: number | undefined;
  readonly script?: Script | undefined;
  /** Path of the script, relative to the workspace. */
  readonly scriptFile?: string | undefined;
  /** Price in US dollars per million tokens, for agents that do not report their cost. */
  readonly price?: { readonly inputPerMtok: number; readonly outputPerMtok: number } | undefined;
}

/** Agent definitions by name. */
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
    'is not a valid input name: start with a letter or `_`, then use letters, digits, `_` or `-`',
  );

const input = z.strictObject({
  description: z.string().optional().describe('Description for the agent that passes the input.'),
  required: z.boolean().optional().describe('Whether a hand-off must pass the input. Defaults to `true`.'),
});

/** Schema of an agent in `reprise.yaml` and in the front matter of `.reprise/agents/<name>.md`. */
export const agentSchema = z
  .strictObject({
    kind: z.enum(agentKinds).describe('Kind of program, which determines its protocol.'),
    description: z
      .string()
      .min(1, 'must not be empty')
      .optional()
      .describe('Purpose of the agent. Shown to agents that can hand work over to it.'),
    inputs: z
      .record(inputName, input.nullable())
      .optional()
      .describe('Inputs that another agent passes when it hands work over, by name.'),
    model: z.string().min(1).optional().describe('Model name, as the agent spells it.'),
    permissions: z
      .enum(presets)
      .optional()
      .describe('Level of access: `read-only`, `edit` (inside the workspace) or `full`. Defaults to `edit`.'),
    allow: z
      .array(rule)
      .optional()
      .describe('Rules for additional actions that the agent is allowed to take.'),
    deny: z.array(rule).optional().describe('Rules for actions that the agent must never take.'),
    escapes: z
      .enum(['fail', 'allow'])
      .optional()
      .describe(
        'Whether a session may change the repository outside its workspace: branches, the main checkout, the git configuration. Defaults to `fail`.',
      ),
    command: words
      .min(1, 'must name a program')
      .optional()
      .describe('Program and first arguments. `{prompt}` and `{prompt_file}` are replaced by the prompt.'),
    args: words.optional().describe('Additional arguments for the program.'),
    env: z.record(z.string(), z.string()).optional().describe('Environment variables for the program.'),
    system_prompt: z.string().optional().describe('System prompt of every session.'),
    max_concurrency: z.int().min(1).optional().describe('Maximum number of parallel sessions, across runs.'),
    timeout: duration.optional().describe('Timeout of a session.'),
    stall_timeout: duration.optional().describe('Maximum time without output.'),
    script: scriptSchema.optional().describe('Steps of a scripted agent.'),
    script_file: z
      .string()
      .min(1)
      .optional()
      .describe('YAML or JSON file with the steps of a scripted agent, relative to the workspace.'),
    price: z
      .strictObject({
        input_per_mtok: usd.describe('US dollars per million input tokens.'),
        output_per_mtok: usd.describe('US dollars per million output tokens.'),
      })
      .optional()
      .describe('Price of tokens, for agents that do not report their cost.'),
  })
  .meta({ title: 'Agent', description: 'Coding agent that does the work of a step.' });

export type WrittenAgent = z.infer<typeof agentSchema>;

/** Returns the JSON Schema of an agent. */
export const agentJsonSchema = (): object => z.toJSONSchema(agentSchema, { io: 'input' });

/** Contradiction in an agent definition, with its key. */
interface KeyProblem {
  readonly key?: keyof WrittenAgent | undefined;
  /** Entry below the key. */
  readonly name?: string | undefined;
  readonly message: string;
  readonly hint?: string | undefined;
}

const onlyFor: Readonly<Partial<Record<keyof WrittenAgent, { kinds: readonly AgentKind[]; hint: string }>>> =
  {
    model: { kinds: ['claude', 'codex'], hint: 'pass it under `args`, as the program expects it' },
    permissions: {
      kinds: ['claude', 'codex', 'acp', 'scripted'],
      hint: 'Reprise cannot restrict such a program: remove the key, or use another kind of agent',
    },
    allow: {
      kinds: ['claude', 'codex', 'acp', 'scripted'],
      hint: 'such a program never asks for permission',
    },
    deny: { kinds: ['claude', 'codex', 'acp', 'scripted'], hint: 'such a program never asks for permission' },
    command: { kinds: ['claude', 'codex', 'acp', 'command'], hint: 'use `run` in the script' },
    args: { kinds: ['claude', 'codex', 'acp', 'command'], hint: 'use `run` in the script' },
    stall_timeout: {
      kinds: ['claude', 'codex', 'acp', 'command'],
      hint: 'a script never stalls: remove the key',
    },
    script: { kinds: ['scripted'], hint: 'write `kind: scripted`' },
    script_file: { kinds: ['scripted'], hint: 'write `kind: scripted`' },
  };

/** Returns the problems that the schema alone does not find. */
export function agentProblems(agent: WrittenAgent): readonly KeyProblem[] {
  const { kind } = agent;
  const misplaced = Object.entries(onlyFor).flatMap(([name, { kinds, hint }]) => {
    const key = name as keyof WrittenAgent;
    if (agent[key] === undefined || kinds.includes(kind)) return [];
    return [{ key, message: `\`${key}\` has no effect for \`kind: ${kind}\``, hint }];
  });
  return [...misplaced, ...missing(agent), ...takenNames(agent), ...unsupported(agent)];
}

/** Returns the argument of a Codex agent that its app server cannot take, if there are rules that need it. */
function unsupported({ kind, args = [], allow = [], deny = [] }: WrittenAgent): readonly KeyProblem[] {
  if (kind !== 'codex' || allow.length + deny.length === 0) return [];
  const translated = appServerArguments(args);
  return translated.ok ? [] : [{ key: 'args', ...unsupportedArgument(translated.unsupported) }];
}

/** Keys that `<next>` reserves beside the inputs of the agent that it names. */
const reservedInNext: ReadonlySet<string> = new Set(['agent', 'task', 'land', 'sleep', 'give-up', 'give_up']);

const takenNames = ({ inputs = {} }: WrittenAgent): readonly KeyProblem[] =>
  Object.keys(inputs)
    .filter(name => reservedInNext.has(name))
    .map(name => ({
      key: 'inputs',
      name,
      message: `an input cannot be named \`${name}\`, which is a reserved key of \`<next>\``,
      hint: 'choose another name',
    }));

function missing({ kind, command, script, script_file }: WrittenAgent): readonly KeyProblem[] {
  if ((kind === 'acp' || kind === 'command') && command === undefined) {
    const example = kind === 'acp' ? '["gemini", "--acp"]' : '["node", "agent.js"]';
    return [{ message: `\`kind: ${kind}\` needs \`command\``, hint: `for example: command: ${example}` }];
  }
  if (kind !== 'scripted') return [];
  if (script !== undefined && script_file !== undefined)
    return [{ key: 'script_file', message: '`script` and `script_file` cannot be combined' }];
  if (script === undefined && script_file === undefined)
    return [
      {
        message: '`kind: scripted` needs `script` or `script_file`',
        hint: 'for example: script: [{ say: "hello" }]',
      },
    ];
  return [];
}
