/** Words that are not keys but that people write, and what they meant. */

interface Objection {
  readonly message: string;
  readonly hint?: string | undefined;
}

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
  matrix: 'write `strategy: { matrix: ... }`',
  'max-parallel': 'write `strategy: { max-parallel: N }`',
  'fail-fast': 'write `strategy: { fail-fast: ... }`',
  on_failure:
    'write `strategy: { on_failure: ... }` for the copies of a step; that of the workflow stands at the top',
  'max-turns': 'write `max_turns`',
  worktree: 'write `workspace`',
  model: 'say it where the agent is defined, in `reprise.yaml`',
  allow: 'write `permissions: { allow: [...] }`',
  deny: 'write `permissions: { deny: [...] }`',
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
  permissions: 'write `permissions` in the steps of agents; scripts run with your own rights',
  strategy: 'write `strategy` in the step',
};

const lookup = (words: Readonly<Record<string, string>>, key: string): string | undefined =>
  Object.hasOwn(words, key) ? words[key] : undefined;

/** What to say about a key that a step cannot have; `undefined` if there is nothing special to say. */
export const objectToStepKey = (key: string): Objection | undefined =>
  pointed('a step', key, lookup(stepWords, key));

/** What to say beside a value that does not fit a key of a step. */
export const hintForStepKey = (key: string): string | undefined =>
  key === 'concurrency'
    ? 'write how many copies of the step run, such as `concurrency: 3`; for one copy for each item use `strategy.matrix`'
    : undefined;

export const objectToWorkflowKey = (key: string): Objection | undefined =>
  pointed('a workflow', key, lookup(workflowWords, key));

const pointed = (owner: string, key: string, hint: string | undefined): Objection | undefined =>
  hint === undefined ? undefined : { message: `${owner} has no \`${key}\``, hint };

/** `actions/checkout@v4` and the like. */
export const isGitHubAction = (reference: string): boolean => /^[\w.-]+\/[\w./-]+@\S+$/.test(reference);
