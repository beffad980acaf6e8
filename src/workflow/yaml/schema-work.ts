import { z } from 'zod';
import { type Json, parseRule } from '../../core/index.ts';
import { failurePolicies } from '../model.ts';

// Building blocks of the schemas. Each message is the second half of a sentence that starts with the key.

/** Accepts everything: a value that was read from YAML is already JSON. */
export const json = z.unknown() as unknown as z.ZodType<Json>;
export const text = z.string();
export const someText = z.string().min(1, 'must not be empty');

export const identifier = z
  .string()
  .regex(
    /^[A-Za-z_][A-Za-z0-9_-]*$/,
    'must be an identifier (letters, digits, `_` and `-`, starting with a letter or `_`)',
  );

export const withUnit = (input: unknown): string | undefined =>
  typeof input === 'number' ? `must be a duration with a unit, such as \`${input}s\`` : undefined;

export const duration = z
  .string({ error: ({ input }) => withUnit(input) })
  .regex(/^(\d+(\.\d+)?(ms|s|m|h|d))+$/, 'must be a duration such as `250ms`, `30s`, `5m` or `1h30m`');

export const positiveInteger = z.int().min(1);

export const environment = z
  .record(
    z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is not a valid environment variable name'),
    z.union([text, z.number(), z.boolean(), z.null()], 'must be a string, a number, true or false'),
  )
  .describe('Environment variables. Values may contain `${{ }}`.');

export const commands = z.union(
  [someText, z.array(someText).min(1, 'must contain at least one command')],
  'must be a command, or a list of commands',
);

export const spendingLimits = {
  cost_usd: z.number().positive().optional().describe('Maximum cost of all agents, in US dollars.'),
  tokens: positiveInteger.optional().describe('Maximum number of input and output tokens of all agents.'),
};

const rule = text
  .refine(given => typeof parseRule(given) !== 'string', {
    error: ({ input }) => {
      const parsed = parseRule(String(input));
      return typeof parsed === 'string' ? parsed : 'is not a valid rule';
    },
  })
  .describe('A rule in the notation of Claude Code, such as `Bash(npm test)`.');

const preset = z.enum(['read-only', 'edit', 'full']);

const permissions = z.union(
  [
    preset,
    z.strictObject({
      preset: preset
        .optional()
        .describe(
          '`read-only`, `edit` (inside the workspace) or `full`. Defaults to the preset of the agent.',
        ),
      allow: z.array(rule).optional().describe('Rules for tool calls that are allowed beyond the preset.'),
      deny: z.array(rule).optional().describe('Rules for tool calls that are always denied.'),
    }),
  ],
  'must be `read-only`, `edit`, `full`, or a map with `preset`, `allow` and `deny`',
);

const prompt = z.union(
  [
    someText.describe('Text of the prompt.'),
    z.strictObject({
      file: someText.describe('Path of a file with the prompt, relative to the workflow file.'),
    }),
  ],
  'must be a string, or a map with `file`',
);

const onFail = z.union(
  [
    z.enum(['fail', 'rework']),
    z.strictObject({
      rework: positiveInteger.describe('Number of times that the agent may fix the problem.'),
    }),
  ],
  'must be `fail`, `rework`, or a map such as `{ rework: 2 }`',
);

/** Keys of steps with an agent. */
export const agentKeys = {
  agent: identifier.optional().describe('Name of the agent that does the work.'),
  prompt: prompt.optional().describe('Prompt for the agent. May contain `${{ }}`.'),
  permissions: permissions.optional().describe('Permissions of the agent in this step.'),
  max_turns: positiveInteger.optional().describe('Maximum number of turns in one session.'),
  on_fail: onFail
    .optional()
    .describe(
      'What to do if a check fails or the output does not match its schema: fail the attempt (`fail`, the default), or let the agent fix it (`rework`, at most 2 times).',
    ),
};

const workspace = z.union(
  [
    z.enum(['worktree', 'readonly', 'none']),
    z.strictObject({
      base: someText
        .optional()
        .describe('Starting point: the id of an earlier step, or a commit or branch. May contain `${{ }}`.'),
      branch: someText
        .optional()
        .describe('Name of the branch. Defaults to a generated name. May contain `${{ }}`.'),
      readonly: z.boolean().optional().describe('If true, the step must not change any file.'),
    }),
  ],
  'must be `worktree`, `readonly`, `none`, or a map with `base`, `branch` and `readonly`',
);

const artifacts = z.union(
  [
    z
      .array(someText)
      .min(1, 'must name at least one file')
      .describe('Paths. Each artifact is named after its file.'),
    z.record(identifier, someText).describe('Paths by artifact name.'),
  ],
  'must be a list of paths, or a map of names to paths',
);

/** Keys of steps that may work in a workspace. */
export const workKeys = {
  workspace: workspace
    .optional()
    .describe(
      'Folder that the step works in: its own git worktree (`worktree`), a worktree that must not change (`readonly`), or the folder of the project (`none`).',
    ),
  setup: commands.optional().describe('Commands that prepare a new workspace. They may contain `${{ }}`.'),
  checks: commands.optional().describe('Commands that must pass for the step to succeed.'),
  teardown: commands.optional().describe('Commands that run after the work, even if it failed.'),
  artifacts: artifacts
    .optional()
    .describe('Files of the workspace to keep. `steps.<id>.artifacts.<name>` is the path of the kept copy.'),
};

const matrix = z.union(
  [
    text.describe('A `${{ }}` that evaluates to a map of lists, or to a list of maps.'),
    z.record(text, json).describe('Values of each key. `include` and `exclude` work as in GitHub Actions.'),
    z.array(json).describe('List of combinations.'),
  ],
  'must be a map of lists, or a `${{ }}` that evaluates to one',
);

const judge = z.union(
  [
    identifier,
    z.strictObject({
      agent: identifier.describe('Name of the agent.'),
      prompt: someText.optional().describe('Criteria for the choice. May contain `${{ }}`.'),
    }),
  ],
  'must be the name of an agent, or a map with `agent` and `prompt`',
);

/** Keys of steps that may run as several copies. */
export const fanOutKeys = {
  concurrency: z
    .int()
    .min(0)
    .optional()
    .describe('Number of identical copies of the step, at most 10,000. 0 or 1 means no fan-out.'),
  strategy: z
    .strictObject({
      matrix: matrix
        .optional()
        .describe(
          'Runs one copy of the step for each combination. A copy reads its values as `matrix.<key>`.',
        ),
      'max-parallel': positiveInteger.optional().describe('Maximum number of copies that run in parallel.'),
      'fail-fast': z
        .boolean()
        .optional()
        .describe('`true` is short for `on_failure: fail-fast`, and `false` for `on_failure: continue`.'),
      on_failure: z
        .enum(failurePolicies)
        .optional()
        .describe(
          'What happens to the other copies when one fails. Defaults to `fail-fast`, and with `select` to `continue`.',
        ),
    })
    .optional()
    .describe('Copies of the step, and how they run.'),
  select: z
    .strictObject({
      gates: commands
        .optional()
        .describe('Commands that must pass in the workspace of a copy for it to be picked.'),
      rank: someText
        .optional()
        .describe('Command that prints a score as its last line. The copy with the highest score wins.'),
      judge: judge.optional().describe('Agent that compares the copies and picks one.'),
    })
    .optional()
    .describe('Picks the best copy. The step succeeds if at least one copy does.'),
};

/** Keys of steps that land work. */
export const landKeys = {
  land: someText.optional().describe('Branch to land the work of a step on. May contain `${{ }}`.'),
  from: text
    .optional()
    .describe('Step whose work lands. May be omitted if only one earlier step leaves work.'),
  verify: someText.optional().describe('Command that must pass on the rebased work before the branch moves.'),
};
