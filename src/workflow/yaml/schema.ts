import { z } from 'zod';
import { failurePolicies } from '../model.ts';
import {
  duration,
  environment,
  identifier,
  json,
  positiveInteger,
  someText,
  spendingLimits,
  text,
  withUnit,
} from './schema-parts.ts';
import { agentKeys, fanOutKeys, landKeys, workKeys } from './schema-work.ts';

/**
 * The shape of a workflow file: what files are checked against, and what editors and the reference are generated from.
 * Messages are the second half of a sentence that begins with the name of the key.
 */

const input = z.strictObject({
  type: z
    .enum(['string', 'number', 'boolean', 'choice', 'json'])
    .optional()
    .describe('What the input must be; `string` unless said otherwise.'),
  required: z.boolean().optional().describe('The run does not start without it, unless there is a default.'),
  default: json.optional().describe('The value if none is given. It must fit the type.'),
  description: text.optional().describe('For people who start the workflow.'),
  options: z
    .array(someText)
    .min(1, 'must offer at least one option')
    .optional()
    .describe('What a `choice` may be.'),
});

const retry = z.union(
  [
    positiveInteger.describe('Attempts in all, the first one included.'),
    z.strictObject({
      attempts: positiveInteger.describe('Attempts in all, the first one included.'),
      backoff: z
        .union(
          [
            duration.describe('The same wait before every attempt.'),
            z.strictObject({
              initial: duration
                .optional()
                .describe('The wait before the second attempt; `1s` unless said otherwise.'),
              factor: z
                .number()
                .min(1)
                .optional()
                .describe('Every further wait is this many times as long; 2 unless said otherwise.'),
              max: duration.optional().describe('No wait is longer; `5m` unless said otherwise.'),
            }),
          ],
          {
            error: ({ input }) =>
              withUnit(input) ??
              'must be a duration such as `10s`, or a map with `initial`, `factor` and `max`',
          },
        )
        .optional()
        .describe('How long to wait between attempts.'),
      on: z
        .array(someText)
        .min(1, 'must name at least one error')
        .optional()
        .describe('Codes or class names of the errors to try again; all unless given.'),
    }),
  ],
  'must be a number of attempts, or a map with `attempts`',
);

const timeout = z.union(
  [
    duration.describe('For each attempt.'),
    z.strictObject({
      attempt: duration
        .optional()
        .describe('For each attempt. Running over is an error that may be retried.'),
      step: duration.optional().describe('For the whole step, attempts and waits included.'),
      stall: duration.optional().describe('How long an agent may be silent.'),
    }),
  ],
  {
    error: ({ input }) =>
      withUnit(input) ?? 'must be a duration such as `30s`, or a map with `attempt`, `step` and `stall`',
  },
);

const approve = z.union(
  [
    someText.describe('The question.'),
    z.strictObject({
      message: someText.describe('The question. May contain `${{ }}`.'),
      choices: z
        .array(someText)
        .min(1, 'must offer at least one choice')
        .optional()
        .describe('What may be answered; `[approve, reject]` unless given. `reject` fails the step.'),
    }),
  ],
  'must be a question, or a map with `message` and `choices`',
);

/** The keys that say what a step does; a step has exactly one of them. */
export const stepKinds = ['run', 'agent', 'uses', 'approve', 'land'] as const;
export type StepKind = (typeof stepKinds)[number];

export const stepSchema = z
  .strictObject({
    id: identifier.describe('Names the step in `needs` and in `steps.<id>`. Unique in its workflow.'),
    name: text.optional().describe('For people.'),
    needs: z
      .union([text, z.array(text)], 'must be the id of a step, or a list of them')
      .optional()
      .describe('The steps that must end first. Only they can be read as `steps.<id>`.'),
    if: z
      .union([text, z.boolean()], 'must be a condition')
      .optional()
      .describe(
        'The step is skipped unless this is true. `success()` is implied unless a status function is called.',
      ),
    env: environment.optional(),
    optional: z.boolean().optional().describe('A failure of this step does not fail the run.'),
    retry: retry.optional().describe('Tries the step again when it fails.'),
    timeout: timeout.optional().describe('How long it may take.'),
    'timeout-minutes': z.number().positive().optional().describe('How many minutes the whole step may take.'),
    budget: z
      .strictObject({
        ...spendingLimits,
        minutes: z.number().positive().optional().describe('How many minutes the whole step may take.'),
      })
      .optional()
      .describe('What the step may use up, over all attempts and workers.'),
    run: someText.optional().describe('A shell script. A `${{ }}` in it is a value, never code.'),
    shell: z.enum(['bash', 'sh']).optional().describe('What runs the script; `bash` unless said otherwise.'),
    'working-directory': someText
      .optional()
      .describe("Where the script runs, relative to its workspace, or to the project's root without one."),
    ...agentKeys,
    output: z.record(text, json).optional().describe('A JSON Schema that the output must fit.'),
    ...workKeys,
    ...fanOutKeys,
    uses: someText
      .optional()
      .describe('Runs another workflow: its name, or the path of its file (`./child.yaml`).'),
    with: z
      .record(text, json)
      .optional()
      .describe('The inputs of the workflow that is used. Values may contain `${{ }}`.'),
    approve: approve.optional().describe('Waits until a person answers.'),
    ...landKeys,
  })
  .meta({
    description: 'One step of the workflow.',
    oneOf: stepKinds.map(kind => ({ required: [kind] })),
  });

export const workflowSchema = z
  .strictObject({
    name: someText.optional().describe('The name of the workflow; that of its file unless given.'),
    description: text.optional().describe('For people.'),
    inputs: z.record(identifier, input.nullable()).optional().describe('What the workflow is started with.'),
    env: environment.optional(),
    on_failure: z
      .enum(failurePolicies)
      .optional()
      .describe('What happens to the other steps when one fails; `fail-fast` unless said otherwise.'),
    runtime: z
      .strictObject({
        max_concurrent_workers: positiveInteger
          .optional()
          .describe('How many steps may run at the same time.'),
        budget: z
          .strictObject({
            minutes: z.number().positive().optional().describe('Wall time that a run may take.'),
            ...spendingLimits,
          })
          .optional()
          .describe('What a run may use up.'),
      })
      .optional()
      .describe('Limits of a run.'),
    outputs: z
      .record(someText, json)
      .optional()
      .describe('What a run gives back. Values may contain `${{ }}` and read every step.'),
    steps: z
      .array(stepSchema)
      .min(1, 'must hold at least one step')
      .describe('What to do. Steps run as soon as their `needs` have ended.'),
  })
  .meta({ title: 'Reprise workflow', description: 'A graph of steps.' });

export type WorkflowDefinition = z.infer<typeof workflowSchema>;
export type StepDefinition = z.infer<typeof stepSchema>;
export type InputDefinition = z.infer<typeof input>;
export type EnvironmentDefinition = z.infer<typeof environment>;

/** The JSON Schema of a workflow file. */
export const workflowJsonSchema = (): object => z.toJSONSchema(workflowSchema, { io: 'input' });
