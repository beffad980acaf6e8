import { z } from 'zod';
import { parseRule } from '../../core/tools.ts';
import { failurePolicies } from '../model.ts';
import { commands, identifier, json, positiveInteger, someText, text } from './schema-parts.ts';

const rule = text
  .refine(given => typeof parseRule(given) !== 'string', {
    error: ({ input }) => {
      const parsed = parseRule(String(input));
      return typeof parsed === 'string' ? parsed : 'is not a rule';
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
        .describe('`read-only`, `edit` (inside its workspace) or `full`; that of the agent unless given.'),
      allow: z.array(rule).optional().describe('What it may do beyond that.'),
      deny: z.array(rule).optional().describe('What it must never do.'),
    }),
  ],
  'must be `read-only`, `edit`, `full`, or a map with `preset`, `allow` and `deny`',
);

const prompt = z.union(
  [
    someText.describe('The prompt itself.'),
    z.strictObject({
      file: someText.describe('A file that holds the prompt, relative to the workflow file.'),
    }),
  ],
  'must be text, or a map with `file`',
);

const onFail = z.union(
  [
    z.enum(['fail', 'rework']),
    z.strictObject({
      rework: positiveInteger.describe('How often the agent is told what was wrong, to mend it.'),
    }),
  ],
  'must be `fail`, `rework`, or a map such as `{ rework: 2 }`',
);

/** The keys of steps with an agent. */
export const agentKeys = {
  agent: identifier.optional().describe('The name of the agent that does the work.'),
  prompt: prompt.optional().describe('What the agent is told. May contain `${{ }}`.'),
  permissions: permissions.optional().describe('What the agent may do in this step.'),
  max_turns: positiveInteger.optional().describe('How many turns the agent may take in one session.'),
  on_fail: onFail
    .optional()
    .describe(
      'What happens when a check fails, or the output does not fit: the attempt fails (`fail`, the default), or the agent is told and tries again (`rework`: twice).',
    ),
};

const workspace = z.union(
  [
    z.enum(['worktree', 'readonly', 'none']),
    z.strictObject({
      base: someText
        .optional()
        .describe(
          'Where it begins: the id of a step that comes before, or a commit or branch. May contain `${{ }}`.',
        ),
      branch: someText
        .optional()
        .describe('The name of its branch; one of the run unless given. May contain `${{ }}`.'),
      readonly: z.boolean().optional().describe('Nothing in it may change.'),
    }),
  ],
  'must be `worktree`, `readonly`, `none`, or a map with `base`, `branch` and `readonly`',
);

const artifacts = z.union(
  [
    z.array(someText).min(1, 'must name at least one file').describe('Each has the name of its file.'),
    z.record(identifier, someText).describe('By name.'),
  ],
  'must be a list of paths, or a map of names and paths',
);

/** The keys of steps that may work in a workspace. */
export const workKeys = {
  workspace: workspace
    .optional()
    .describe(
      'Where the step works: in a git worktree of its own, in one that must not change, or in the folder of the project.',
    ),
  setup: commands.optional().describe('Commands that prepare a new workspace. They may contain `${{ }}`.'),
  checks: commands.optional().describe('Commands that must pass before the work counts.'),
  teardown: commands.optional().describe('Commands that run after the work, however it ended.'),
  artifacts: artifacts
    .optional()
    .describe('Files of the workspace that are kept: `steps.<id>.artifacts.<name>` is the path of the copy.'),
};

const matrix = z.union(
  [
    text.describe('A `${{ }}` that gives such a map, or a list of maps.'),
    z
      .record(text, json)
      .describe('The values of each key; `include` and `exclude` mean what GitHub means by them.'),
    z.array(json).describe('The combinations themselves.'),
  ],
  'must be a map of lists, or a `${{ }}` that gives one',
);

const judge = z.union(
  [
    identifier,
    z.strictObject({
      agent: identifier.describe('The name of the agent.'),
      prompt: someText.optional().describe('What to look for. May contain `${{ }}`.'),
    }),
  ],
  'must be the name of an agent, or a map with `agent` and `prompt`',
);

/** The keys of steps that may run many times at once. */
export const fanOutKeys = {
  concurrency: z
    .int()
    .min(0)
    .optional()
    .describe('How many identical copies of the step run. 0 and 1 are an ordinary step.'),
  strategy: z
    .strictObject({
      matrix: matrix
        .optional()
        .describe('One copy of the step for each combination, which it reads as `matrix.<key>`.'),
      'max-parallel': positiveInteger.optional().describe('How many copies may run at the same time.'),
      'fail-fast': z
        .boolean()
        .optional()
        .describe('Short for `on_failure: fail-fast` (true) or `continue` (false).'),
      on_failure: z
        .enum(failurePolicies)
        .optional()
        .describe(
          'What happens to the other copies when one fails; `fail-fast` unless said otherwise, and `continue` with `select`.',
        ),
    })
    .optional()
    .describe('How the step is multiplied.'),
  select: z
    .strictObject({
      gates: commands.optional().describe('Commands that must pass in the workspace of a copy.'),
      rank: someText
        .optional()
        .describe('A command whose last line is a number; the copy with the highest wins.'),
      judge: judge.optional().describe('An agent that compares the copies and picks one.'),
    })
    .optional()
    .describe('Picks the best copy. One that succeeds is then enough.'),
};

/** The keys of steps that land work. */
export const landKeys = {
  land: someText
    .optional()
    .describe('The branch onto which the work of a step is brought. May contain `${{ }}`.'),
  from: text.optional().describe('The step whose work it is; the only one that comes before unless given.'),
  verify: someText.optional().describe('A command that must pass on the result before the branch moves.'),
};
