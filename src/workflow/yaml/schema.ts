import { z } from 'zod';
import { failurePolicies } from '../model.ts';
import {
  agentKeys,
  duration,
  environment,
  fanOutKeys,
  identifier,
  json,
  landKeys,
  positiveInteger,
  someText,
  spendingLimits,
  text,
  withUnit,
  workKeys,
} from './schema-work.ts';

// The schema of a workflow file validates files, and editor support and the reference are generated from it.
// Each message is the second half of a sentence that starts with the key.

const input = z.strictObject({
  type: z
    .enum(['string', 'number', 'boolean', 'choice', 'json'])
    .optional()
    .describe('Type of the input. Defaults to `string`.'),
  required: z
    .boolean()
    .optional()
    .describe('If true, a run does not start without this input, unless it has a default.'),
  default: json.optional().describe('Value if the input is not given. It must match the type.'),
  description: text.optional().describe('Description for the person who starts the workflow.'),
  options: z
    .array(someText)
    .min(1, 'must offer at least one option')
    .optional()
    .describe('Allowed values of a `choice`.'),
});

const retry = z.union(
  [
    positiveInteger.describe('Total number of attempts, including the first.'),
    z.strictObject({
      attempts: positiveInteger.describe('Total number of attempts, including the first.'),
      backoff: z
        .union(
          [
            duration.describe('Fixed delay before each retry.'),
            z.strictObject({
              initial: duration.optional().describe('Delay before the second attempt. Defaults to `1s`.'),
              factor: z
                .number()
                .min(1)
                .optional()
                .describe('Factor by which the delay grows with every retry. Defaults to 2.'),
              max: duration.optional().describe('Longest delay. Defaults to `5m`.'),
            }),
          ],
          {
            error: ({ input }) =>
              withUnit(input) ??
              'must be a duration such as `10s`, or a map with `initial`, `factor` and `max`',
          },
        )
        .optional()
        .describe('Delay between attempts.'),
      on: z
        .array(someText)
        .min(1, 'must name at least one error')
        .optional()
        .describe('Codes or class names of the errors to retry. Defaults to all errors.'),
    }),
  ],
  'must be a number of attempts, or a map with `attempts`',
);

const timeout = z.union(
  [
    duration.describe('Timeout of each attempt.'),
    z.strictObject({
      attempt: duration.optional().describe('Timeout of each attempt. A timed-out attempt may be retried.'),
      step: duration.optional().describe('Timeout of the whole step, including all attempts and delays.'),
      stall: duration.optional().describe('Longest time that an agent may stay silent.'),
    }),
  ],
  {
    error: ({ input }) =>
      withUnit(input) ?? 'must be a duration such as `30s`, or a map with `attempt`, `step` and `stall`',
  },
);

const approve = z.union(
  [
    someText.describe('Question for the person.'),
    z.strictObject({
      message: someText.describe('Question for the person. May contain `${{ }}`.'),
      choices: z
        .array(someText)
        .min(1, 'must offer at least one choice')
        .optional()
        .describe('Possible answers. Defaults to `[approve, reject]`. `reject` fails the step.'),
    }),
  ],
  'must be a question, or a map with `message` and `choices`',
);

/** Keys that determine what a step does. A step has exactly one of them. */
export const stepKinds = ['run', 'agent', 'uses', 'approve', 'land'] as const;
export type StepKind = (typeof stepKinds)[number];

export const stepSchema = z
  .strictObject({
    id: identifier.describe('Id of the step in `needs` and `steps.<id>`. Unique in its workflow.'),
    name: text.optional().describe('Name for readers of the file.'),
    needs: z
      .union([text, z.array(text)], 'must be the id of a step, or a list of them')
      .optional()
      .describe('Steps that must end before this one starts. Only these can be read as `steps.<id>`.'),
    if: z
      .union([text, z.boolean()], 'must be a condition')
      .optional()
      .describe(
        'Condition. The step is skipped if it is false. `success()` is implied unless the condition calls a status function.',
      ),
    env: environment.optional(),
    optional: z.boolean().optional().describe('If true, a failure of this step does not fail the run.'),
    retry: retry.optional().describe('Retries the step when it fails.'),
    timeout: timeout.optional().describe('Time limits of the step.'),
    'timeout-minutes': z.number().positive().optional().describe('Timeout of the whole step, in minutes.'),
    budget: z
      .strictObject({
        ...spendingLimits,
        minutes: z.number().positive().optional().describe('Timeout of the whole step, in minutes.'),
      })
      .optional()
      .describe('Limits on time, cost and tokens of the step, over all attempts and copies.'),
    run: someText.optional().describe('Shell script. A `${{ }}` in it is a value that the shell never runs.'),
    shell: z.enum(['bash', 'sh']).optional().describe('Shell that runs the script. Defaults to `bash`.'),
    'working-directory': someText
      .optional()
      .describe(
        "Folder that the script runs in, relative to its workspace, or to the project's root if it has none.",
      ),
    ...agentKeys,
    output: z
      .record(text, json)
      .optional()
      .describe(
        'JSON Schema (2020-12) that the output must match. Patterns cannot use look-around or back-references.',
      ),
    ...workKeys,
    ...fanOutKeys,
    uses: someText
      .optional()
      .describe('Name of another workflow to run, or the path of its file (`./child.yaml`).'),
    with: z.record(text, json).optional().describe('Inputs of that workflow. Values may contain `${{ }}`.'),
    approve: approve.optional().describe('Asks a person and waits for the answer.'),
    ...landKeys,
  })
  .meta({
    description: 'One step of the workflow.',
    oneOf: stepKinds.map(kind => ({ required: [kind] })),
  });

export const workflowSchema = z
  .strictObject({
    name: someText.optional().describe('Name of the workflow. Defaults to the name of its file.'),
    description: text.optional().describe('Description for the person who starts the workflow.'),
    inputs: z.record(identifier, input.nullable()).optional().describe('Inputs of a run, by name.'),
    env: environment.optional(),
    on_failure: z
      .enum(failurePolicies)
      .optional()
      .describe('What happens to the other steps when one fails. Defaults to `fail-fast`.'),
    runtime: z
      .strictObject({
        max_concurrent_workers: positiveInteger
          .optional()
          .describe('Maximum number of steps that run in parallel.'),
        budget: z
          .strictObject({
            minutes: z.number().positive().optional().describe('Maximum wall time of a run, in minutes.'),
            ...spendingLimits,
          })
          .optional()
          .describe('Limits on time, cost and tokens of a run.'),
      })
      .optional()
      .describe('Limits of a run.'),
    outputs: z
      .record(someText, json)
      .optional()
      .describe('Outputs of a run. Values may contain `${{ }}` and read every step.'),
    steps: z
      .array(stepSchema)
      .min(1, 'must contain at least one step')
      .describe('Steps of the workflow. A step starts as soon as its `needs` have ended.'),
  })
  .meta({ title: 'Reprise workflow', description: 'A graph of steps.' });

export type WorkflowDefinition = z.infer<typeof workflowSchema>;
export type StepDefinition = z.infer<typeof stepSchema>;
export type InputDefinition = z.infer<typeof input>;
export type EnvironmentDefinition = z.infer<typeof environment>;

/** Returns the JSON Schema of a workflow file. */
export const workflowJsonSchema = (): object => z.toJSONSchema(workflowSchema, { io: 'input' });
