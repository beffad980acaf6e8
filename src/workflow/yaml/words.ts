/** Words that are not keys but that people write, and what they meant. */

interface Objection {
  readonly message: string;
  readonly hint?: string | undefined;
}

/** Keys of steps that are understood but cannot run yet. Delete a line when its feature is there. */
const unsupportedKinds = ['agent', 'land'] as const;
const unsupportedStepKeys = [
  'prompt',
  'concurrency',
  'strategy',
  'workspace',
  'setup',
  'teardown',
  'permissions',
  'checks',
  'on_fail',
  'select',
  'artifacts',
  'from',
  'verify',
] as const;

const stepWords: Readonly<Record<string, string>> = {
  'continue-on-error': 'write `optional: true`',
  continue_on_error: 'write `optional: true`',
  'runs-on': 'leave it out: steps run on this machine',
  depends_on: 'write `needs`',
  dependsOn: 'write `needs`',
  command: 'write `run`',
  script: 'write `run`',
  timeout_minutes: 'write `timeout-minutes`',
  working_directory: 'write `working-directory`',
  cwd: 'write `working-directory`',
  when: 'write `if`',
  steps: 'a step has no steps of its own: put them into another workflow and run it with `uses`',
};

const workflowWords: Readonly<Record<string, string>> = {
  jobs: 'write `steps`: a list of steps, each with an `id` and its `needs`',
  on: 'leave it out: a workflow starts when you run it',
  'runs-on': 'leave it out: steps run on this machine',
  concurrency: 'write `runtime: { max_concurrent_workers: N }`',
  'timeout-minutes': 'write `runtime: { budget: { minutes: N } }`',
  'fail-fast': 'write `on_failure: fail-fast`',
  defaults: 'write `shell` and `working-directory` in the steps',
  permissions: 'leave it out: steps run with your own rights',
};

const includes = (words: readonly string[], word: string): boolean => words.includes(word);
const lookup = (words: Readonly<Record<string, string>>, key: string): string | undefined =>
  Object.hasOwn(words, key) ? words[key] : undefined;

/** Whether a step asks for something that only a later version can do. */
const isUnsupportedStep = (keys: readonly string[]): boolean =>
  keys.some(key => includes(unsupportedKinds, key));

/**
 * What to say about a key that a step cannot have; `undefined` if there is nothing special to say,
 * and `'silent'` if another key of the same step has said it.
 */
export function objectToStepKey(key: string, siblings: readonly string[]): Objection | 'silent' | undefined {
  if (includes(unsupportedKinds, key))
    return { message: `\`${key}\` steps are not supported by this version` };
  if (includes(unsupportedStepKeys, key)) {
    return isUnsupportedStep(siblings)
      ? 'silent'
      : { message: `\`${key}\` is not supported by this version` };
  }
  return pointed('a step', key, lookup(stepWords, key));
}

export const objectToWorkflowKey = (key: string): Objection | undefined =>
  pointed('a workflow', key, lookup(workflowWords, key));

const pointed = (owner: string, key: string, hint: string | undefined): Objection | undefined =>
  hint === undefined ? undefined : { message: `${owner} has no \`${key}\``, hint };

/** `actions/checkout@v4` and the like. */
export const isGitHubAction = (reference: string): boolean => /^[\w.-]+\/[\w./-]+@\S+$/.test(reference);
