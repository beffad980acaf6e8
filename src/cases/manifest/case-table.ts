import { objectToPath } from '../../core/index.ts';
import { policyNames } from '../../effects/explore/index.ts';
import { claimStates } from '../../store/index.ts';
import {
  argumentList,
  checkPathKey,
  commitId,
  duration,
  environment,
  hintForCaseWide,
  stepName,
  textsByName,
} from './fields.ts';
import {
  type CaseBase,
  type CaseClaim,
  definitionSources,
  type ExplorationSettings,
  faultKinds,
  fidelities,
  type Invariant,
  liveRoles,
  type ServedSession,
} from './manifest.ts';
import {
  anyText,
  described,
  listOf,
  oneOf,
  optional,
  required,
  ruled,
  type TomlReader,
  type TomlSite,
  table,
  text,
  truth,
  type ValuesOf,
  whole,
} from './reader.ts';
import { multi, type ParsedStep, parseStep, run, stepFields } from './step.ts';
import { trigger } from './trigger.ts';

const session: TomlReader<ServedSession> = table({
  fields: {
    role: required(described(text, 'Role of the session: `dispatch`, or the name of an agent.'), ''),
    vcr: required(described(text, 'Name of a session file, without folder and extension.'), ''),
  },
  build: (values, site) => ({ ...values, position: site.position }),
});

interface WorkerCommand {
  readonly parsed: ParsedStep;
  readonly hasOwnTimeout: boolean;
}

const worker: TomlReader<WorkerCommand> = table({
  fields: {
    name: required(described(stepName, 'Name of the worker in the snapshot.'), ''),
    sessions: required(described(listOf(session), 'Sessions to serve to the worker, in this order.'), []),
    ...stepFields,
  },
  build: (values, site) => ({
    parsed: parseStep({ ...values, command: '', concurrentGroup: workerGroup }, site),
    hasOwnTimeout: site.has('timeout'),
  }),
  hintFor: key =>
    key === 'command' || key === 'workflow' ? `move \`${key}\` to [worker_test]` : hintForCaseWide(key),
});

const workerGroup = 'workers';

/** `[worker_test]`: workers that run in parallel and are served existing sessions. */
const workerTest: TomlReader<readonly ParsedStep[]> = table({
  fields: {
    num_workers: required(described(whole(1), 'Number of workers; must match the length of `workers`.'), 0),
    command: optional(described(text, 'Command that every worker runs. Defaults to `worker`.'), 'worker'),
    workflow: optional(described(text, 'Workflow to run, if `command` is `run`.')),
    args: optional(described(argumentList, 'Arguments of every worker, placed before its own.'), []),
    env: optional(described(environment, 'Environment variables of every worker.'), {}),
    timeout: optional(described(duration, 'Timeout of workers that do not set their own.')),
    workers: required(described(listOf(worker, { min: 1 }), 'Workers to run in parallel.'), []),
  },
  build: ({ num_workers: declared, command, workflow, args, env, timeout, workers }, site) => {
    checkNumber(site, declared);
    checkCommand(site, command);
    const common = workflow === undefined ? args : [workflow, ...args];
    return workers.map(({ parsed: { step, site }, hasOwnTimeout }) => ({
      site,
      step: {
        ...step,
        command,
        args: [...common, ...step.args],
        env: { ...env, ...step.env },
        timeoutMs: hasOwnTimeout ? step.timeoutMs : timeout,
      },
    }));
  },
  hintFor: hintForCaseWide,
});

function checkNumber(site: TomlSite, declared: number): void {
  const { value } = site.at('workers');
  if (declared === 0 || !Array.isArray(value) || value.length === declared) return;
  const listed = value.length === 1 ? '1 worker' : `${value.length} workers`;
  site
    .at('num_workers')
    .refuse(`is ${declared}, but the case lists ${listed}`, 'add a [[worker_test.workers]] table per worker');
}

function checkCommand(site: TomlSite, command: string): void {
  if (command === 'shell')
    site
      .at('command')
      .refuse('must be a Reprise command', 'a shell script uses no sessions; use [multi] for it');
  else if (site.has('workflow') && command !== 'run')
    site.at('workflow').object({
      message: '`workflow` is only allowed with the command `run`',
      hint: 'write command = "run"',
      atKey: true,
    });
}

const casePath = ruled(text, { objection: path => objectToPath(path, 'the folder of the case') });

const base: TomlReader<CaseBase> = table({
  fields: {
    commit: required(described(commitId, 'Commit that was checked out when the run started.'), ''),
    branch: optional(described(text, 'Branch that was checked out. Defaults to `main`.'), 'main'),
    pack: required(described(casePath, 'Pack file with the objects of the commit, in the case folder.'), ''),
    shallow: optional(described(listOf(commitId), 'Commits whose parents are not in the pack.'), []),
  },
  build: values => values,
});

const claim: TomlReader<CaseClaim> = table({
  fields: {
    task: required(described(text, 'Id of the task.'), ''),
    state: optional(
      described(
        oneOf(claimStates),
        'State of the claim. `held`: another worker is working on the task. Defaults to `held`.',
      ),
      'held',
    ),
    version: optional(
      described(
        text,
        'Version of the task text when it was claimed. A failed task is not retried until its version changes.',
      ),
      '',
    ),
    by: optional(described(text, 'Name of the worker that claimed the task.'), 'somebody'),
  },
  build: values => values,
});

const invariant: TomlReader<Invariant> = table({
  fields: {
    name: required(described(text, 'Name of the invariant in messages.'), ''),
    run: optional(described(text, 'Shell script that must succeed.')),
    command: optional(described(argumentList, 'Program with its arguments, instead of a script.')),
  },
  build: ({ name, run, command }, site, hasUnknownKeys) => {
    if (site.has('run') === site.has('command')) {
      if (!hasUnknownKeys)
        site.refuse('needs either `run` (a script) or `command` (a program with its arguments)');
      return undefined;
    }
    const { position } = site;
    if (run !== undefined) return { name, check: { kind: 'run', script: run }, position };
    if (command?.length === 0) site.at('command').refuse('must not be empty');
    return { name, check: { kind: 'command', argv: command ?? [] }, position };
  },
});

const explore: TomlReader<ExplorationSettings> = table({
  fields: {
    policy: optional(described(oneOf(policyNames), 'Policy that selects schedules.')),
    schedules: optional(described(whole(1), 'Maximum number of schedules.')),
    for: optional(described(duration, 'Maximum duration of the exploration.')),
    seed: optional(described(whole(0), 'Random seed. The same seed selects the same schedules.')),
    crashes: optional(described(truth, 'Whether to inject crashes.')),
    faults: optional(described(listOf(oneOf(faultKinds)), 'Kinds of failures to inject.')),
    any_outcome: optional(
      described(
        truth,
        'Whether an outcome is accepted that never occurs when the commands run one after another. Defaults to `false`.',
      ),
    ),
  },
  build: ({ for: forMs, any_outcome: anyOutcome, ...rest }) => ({ ...rest, forMs, anyOutcome }),
});

const scriptName = (name: string, site: Parameters<typeof checkPathKey>[1]): void => {
  if (!/^[\w.-]+$/.test(name) || /^\.+$/.test(name))
    site.object({
      message: `invalid script name \`${name}\``,
      hint: 'use letters, digits, `.`, - and _',
      atKey: true,
    });
};

export const forms = ['multi', 'run', 'worker_test'] as const;

const fields = {
  description: optional(described(anyText, 'Description for readers. Reprise ignores it.')),
  recorded_by: optional(
    described(
      text,
      'Command that records the case if `--record` alone is not enough. It must set REPRISE_RECORDED_BY to this text.',
    ),
  ),
  show_thinking: optional(
    described(truth, 'Whether the output shows the thoughts of agents. Defaults to `false`.'),
    false,
  ),
  model: optional(described(text, 'Model that replaces the model of every agent.')),
  fidelity: optional(
    described(
      oneOf(fidelities),
      '`sessions`: git and files are real. `tape`: every effect is answered from the tape. Defaults to `sessions`.',
    ),
    'sessions',
  ),
  live: optional(described(listOf(oneOf(liveRoles)), 'Kinds of scripts that run for real on replay.'), []),
  env: optional(described(environment, 'Environment variables of all commands.'), {}),
  timeline: optional(
    described(truth, 'Whether the snapshot shows the order of shared effects. Defaults to `false`.'),
    false,
  ),
  files: optional(
    described(textsByName(checkPathKey), 'Initial files of the test repository: content by path.'),
    {},
  ),
  definitions: optional(
    described(
      oneOf(definitionSources),
      'Source of the workflows, agents and settings. `case`: those in `files`. `project`: the current ones of the project. Defaults to `case`.',
    ),
    'case',
  ),
  scripts: optional(described(textsByName(scriptName), 'Scripts of `shell` commands: content by name.'), {}),
  multi: optional(described(multi, 'Several commands.'), []),
  run: optional(described(run, 'A single command.'), []),
  worker_test: optional(described(workerTest, 'Parallel workers that are served existing sessions.'), []),
  triggers: optional(described(listOf(trigger), 'Actions to perform when a command reaches an effect.'), []),
  claims: optional(described(listOf(claim), 'Task claims of other workers when the case starts.'), []),
  base: optional(described(base, 'Commit that a captured case starts from.')),
  invariants: optional(
    described(listOf(invariant), 'Checks that must succeed after every explored schedule.'),
    [],
  ),
  explore: optional(described(explore, 'Exploration by `reprise test`, and defaults for `reprise explore`.')),
} as const;

export type CaseValues = ValuesOf<typeof fields>;

/** Reader of a whole case file. */
export const caseTable: TomlReader<CaseValues> = table({
  fields,
  build: values => values,
  hintFor: key => keyHints.get(key),
});

const keyHints: ReadonlyMap<string, string> = new Map([
  ['name', 'remove it; a case is named after its file'],
  ['steps', 'write [[multi.steps]]'],
  ['step', 'write [[multi.steps]]'],
  ['command', 'move it below [run]'],
  ['args', 'move it below [run]'],
  ['workers', 'write [[worker_test.workers]]'],
  ['num_workers', 'move it below [worker_test]'],
  ['trigger', 'write [[triggers]]'],
  ['thinking', 'write `show_thinking`'],
]);

/** JSON Schema of a case file, for editors. */
export const caseSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Reprise test case',
  description: 'Commands of a test case and their expected results.',
  ...caseTable.schema,
};
