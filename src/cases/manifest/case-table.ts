import { policyNames } from '../../effects/explore/policies.ts';
import { claimStates } from '../../store/claims.ts';
import { checkPathKey, objectToPath } from '../../testing/manifest/paths.ts';
import { optional, required, table, type ValuesOf } from '../../testing/manifest/table.ts';
import { workerTest } from '../../testing/manifest/worker-test.ts';
import { argumentList, commitId, duration, environment, textsByName } from './fields.ts';
import {
  type CaseBase,
  type CaseClaim,
  definitionSources,
  type Exploration,
  faultKinds,
  fidelities,
  type Invariant,
  liveRoles,
} from './manifest.ts';
import { anyText, described, listOf, oneOf, type Reader, ruled, text, truth, whole } from './reader.ts';
import { multi, run } from './step.ts';
import { trigger } from './trigger.ts';

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
