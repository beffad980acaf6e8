import { policyNames } from '../../effects/explore/policies.ts';
import { claimStates } from '../../store/claims.ts';
import {
  argumentList,
  checkPathKey,
  commitId,
  duration,
  environment,
  hintForCaseWide,
  objectToPath,
  stepName,
  textsByName,
} from './fields.ts';
import {
  type CaseBase,
  type CaseClaim,
  definitionSources,
  type Exploration,
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
  type Reader,
  required,
  ruled,
  type Site,
  table,
  text,
  truth,
  type ValuesOf,
  whole,
} from './reader.ts';
import { multi, type PlacedStep, placeStep, run, stepFields } from './step.ts';
import { trigger } from './trigger.ts';

const session: Reader<ServedSession> = table({
  fields: {
    role: required(
      described(text, 'What the session is for, such as `dispatch` or the name of an agent.'),
      '',
    ),
    vcr: required(described(text, 'The name of a session file, without its folder and its ending.'), ''),
  },
  build: (values, site) => ({ ...values, position: site.position }),
});

interface Worker {
  readonly placed: PlacedStep;
  readonly hasOwnTimeout: boolean;
}

const worker: Reader<Worker> = table({
  fields: {
    name: required(described(stepName, 'Names the worker in the snapshot.'), ''),
    sessions: required(described(listOf(session), 'The sessions that it is served, in this order.'), []),
    ...stepFields,
  },
  build: (values, site) => ({
    placed: placeStep({ ...values, command: '', concurrentGroup: workerGroup }, site),
    hasOwnTimeout: site.has('timeout'),
  }),
  hintFor: key =>
    key === 'command' || key === 'workflow' ? `write \`${key}\` in [worker_test]` : hintForCaseWide(key),
});

const workerGroup = 'workers';

/** `[worker_test]`: workers that run at the same time, each with sessions that were made before. */
const workerTest: Reader<readonly PlacedStep[]> = table({
  fields: {
    num_workers: required(described(whole(1), 'How many workers there are: checked against the list.'), 0),
    command: optional(described(text, 'What each worker runs: `worker` unless said otherwise.'), 'worker'),
    workflow: optional(described(text, 'The workflow, for the command `run`.')),
    args: optional(described(argumentList, 'For all workers, before their own.'), []),
    env: optional(described(environment, 'For all workers.'), {}),
    timeout: optional(described(duration, 'For workers without one of their own.')),
    workers: required(described(listOf(worker, { least: 1 }), 'They run at the same time.'), []),
  },
  build: ({ num_workers: said, command, workflow, args, env, timeout, workers }, site) => {
    checkNumber(site, said);
    checkCommand(site, command);
    const common = workflow === undefined ? args : [workflow, ...args];
    return workers.map(({ placed: { step, site }, hasOwnTimeout }) => ({
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

function checkNumber(site: Site, said: number): void {
  const { value } = site.at('workers');
  if (said === 0 || !Array.isArray(value) || value.length === said) return;
  const written = value.length === 1 ? '1 worker is written' : `${value.length} workers are written`;
  site.at('num_workers').refuse(`is ${said}, but ${written}`, 'write a [[worker_test.workers]] for each');
}

function checkCommand(site: Site, command: string): void {
  if (command === 'shell')
    site
      .at('command')
      .refuse('must be a command of Reprise', 'a shell script has no sessions: write [multi]');
  else if (site.has('workflow') && command !== 'run')
    site.at('workflow').object({
      message: '`workflow` goes with the command `run` only',
      hint: 'write command = "run"',
      atKey: true,
    });
}

const casePath = ruled(text, { objection: path => objectToPath(path, 'the folder of the case') });

const base: Reader<CaseBase> = table({
  fields: {
    commit: required(described(commitId, 'The commit that was checked out when the run began.'), ''),
    branch: optional(described(text, 'The branch that it was on.'), 'main'),
    pack: required(described(casePath, 'The file with its objects, in the folder of the case.'), ''),
    shallow: optional(described(listOf(commitId), 'Commits whose parents were left out.'), []),
  },
  build: values => values,
});

const claim: Reader<CaseClaim> = table({
  fields: {
    task: required(described(text, 'The id of the task.'), ''),
    state: optional(
      described(oneOf(claimStates), 'What became of it; `held`: somebody else is at work on it.'),
      'held',
    ),
    version: optional(
      described(text, 'Of its text, when it was claimed: a task that has failed waits for another one.'),
      '',
    ),
    by: optional(described(text, 'Who had it.'), 'somebody'),
  },
  build: values => values,
});

const invariant: Reader<Invariant> = table({
  fields: {
    name: required(described(text, 'Names it in messages.'), ''),
    run: optional(described(text, 'A script that must succeed.')),
    command: optional(described(argumentList, 'A program with its arguments, in place of a script.')),
  },
  build: ({ name, run, command }, site, hasUnknownKeys) => {
    if (site.has('run') === site.has('command')) {
      if (!hasUnknownKeys)
        site.refuse('needs either `run`, a script, or `command`, a program with its arguments');
      return undefined;
    }
    const { position } = site;
    if (run !== undefined) return { name, check: { kind: 'run', script: run }, position };
    if (command?.length === 0) site.at('command').refuse('must not be empty');
    return { name, check: { kind: 'command', argv: command ?? [] }, position };
  },
});

const explore: Reader<Exploration> = table({
  fields: {
    policy: optional(described(oneOf(policyNames), 'How orders are chosen.')),
    schedules: optional(described(whole(1), 'How many orders at most.')),
    for: optional(described(duration, 'How long at most.')),
    seed: optional(described(whole(0), 'Where chance begins: the same seed gives the same orders.')),
    crashes: optional(described(truth, 'Whether crashes are tried as well.')),
    faults: optional(described(listOf(oneOf(faultKinds)), 'Which failures are tried as well.')),
  },
  build: ({ for: forMs, ...rest }) => ({ ...rest, forMs }),
});

const scriptName = (name: string, site: Parameters<typeof checkPathKey>[1]): void => {
  if (!/^[\w.-]+$/.test(name) || /^\.+$/.test(name))
    site.object({
      message: `a script cannot be named \`${name}\``,
      hint: 'use letters, digits, `.`, - and _',
      atKey: true,
    });
};

export const forms = ['multi', 'run', 'worker_test'] as const;

const fields = {
  description: optional(described(anyText, 'For people.')),
  recorded_by: optional(
    described(
      text,
      'The command that records the case, where that takes more than `--record`: it sets REPRISE_RECORDED_BY to this text.',
    ),
  ),
  show_thinking: optional(described(truth, 'Whether the output shows what agents think.'), false),
  model: optional(described(text, 'Used in place of the model that agents are defined with.')),
  fidelity: optional(
    described(
      oneOf(fidelities),
      '`sessions`: git and files are real; `tape`: every effect is answered from the tape.',
    ),
    'sessions',
  ),
  live: optional(described(listOf(oneOf(liveRoles)), 'What runs for real on replay.'), []),
  env: optional(described(environment, 'Variables of all steps.'), {}),
  timeline: optional(described(truth, 'Whether the snapshot shows the order of shared effects.'), false),
  files: optional(described(textsByName(checkPathKey), 'The test repository at first: content by path.'), {}),
  definitions: optional(
    described(
      oneOf(definitionSources),
      'Whose workflows, agents and settings are played: those in `files`, or those that the project has now.',
    ),
    'case',
  ),
  scripts: optional(described(textsByName(scriptName), 'For `shell` steps: content by name.'), {}),
  multi: optional(described(multi, 'A case of several steps.'), []),
  run: optional(described(run, 'A case of one command.'), []),
  worker_test: optional(described(workerTest, 'A case of workers with sessions made before.'), []),
  triggers: optional(described(listOf(trigger), 'What happens when a step reaches an effect.'), []),
  claims: optional(described(listOf(claim), 'How tasks stand when the case begins.'), []),
  base: optional(described(base, 'What a captured case starts from.')),
  invariants: optional(described(listOf(invariant), 'What must hold after every explored order.'), []),
  explore: optional(
    described(
      explore,
      'How other orders are explored by `reprise test`, and by `reprise explore` unless it is said there.',
    ),
  ),
} as const;

export type CaseValues = ValuesOf<typeof fields>;

/** The whole case file. */
export const caseTable: Reader<CaseValues> = table({
  fields,
  build: values => values,
  hintFor: key => meant.get(key),
});

const meant: ReadonlyMap<string, string> = new Map([
  ['name', 'leave it out: a case is named by its file'],
  ['steps', 'write [[multi.steps]]'],
  ['step', 'write [[multi.steps]]'],
  ['command', 'write it below [run]'],
  ['args', 'write it below [run]'],
  ['workers', 'write [[worker_test.workers]]'],
  ['num_workers', 'write it below [worker_test]'],
  ['trigger', 'write [[triggers]]'],
  ['thinking', 'write `show_thinking`'],
]);

/** The JSON Schema of a case file, for editors. */
export const caseSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Reprise test case',
  description: 'What a test case runs and expects.',
  ...caseTable.schema,
};
