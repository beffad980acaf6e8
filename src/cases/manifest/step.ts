import { expectation, nothingExpected } from '../../testing/manifest/expectation.ts';
import { killAfter } from '../../testing/manifest/kill-after.ts';
import type { Site } from '../../testing/manifest/site.ts';
import { type Fields, optional, required, table, type ValuesOf } from '../../testing/manifest/table.ts';
import { argumentList, duration, environment, hintForCaseWide, stepName } from './fields.ts';
import type { CaseStep } from './manifest.ts';
import { anyText, described, listOf, mapped, type Reader, text } from './reader.ts';

/** A step with its place, so that what it names can be looked for. */
export interface PlacedStep {
  readonly step: CaseStep;
  readonly site: Site;
}

/** What a step of any form may have. */
export const stepFields = {
  args: optional(
    described(argumentList, 'Arguments of the command: a list, or one text that is split like in a shell.'),
    [],
  ),
  stdin: optional(described(anyText, 'What the command reads from its input.')),
  env: optional(described(environment, 'Variables of this step.'), {}),
  expect: optional(described(expectation, 'What must hold after the step.'), nothingExpected),
  timeout: optional(described(duration, 'How long the step may take: seconds, or a text such as "1m30s".')),
  kill_after: optional(described(killAfter, 'The effect or event after which the step is killed.')),
} as const satisfies Fields;

const commandFields = {
  ...stepFields,
  script: optional(described(text, 'The name of a script of [scripts], for the command `shell`.')),
} as const satisfies Fields;

const name = described(stepName, 'Names the step in the snapshot and its tape.');
const command = described(text, 'A command of Reprise such as `run`, or `shell` with a `script`.');

type StepValues = ValuesOf<typeof stepFields> & Pick<CaseStep, 'name' | 'command'> & Partial<CaseStep>;

/** Makes a step of its fields. */
export function placeStep({ kill_after: killAfter, timeout, ...values }: StepValues, site: Site): PlacedStep {
  const step: CaseStep = {
    concurrentGroup: undefined,
    script: undefined,
    sessions: undefined,
    ...values,
    timeoutMs: timeout,
    killAfter,
    position: site.position,
  };
  return { step, site };
}

const groupedStep: Reader<PlacedStep> = table({
  fields: {
    name: required(name, ''),
    command: required(command, ''),
    concurrent_group: optional(described(text, 'Neighbours of the same group run at the same time.')),
    ...commandFields,
  },
  build: ({ concurrent_group: concurrentGroup, ...values }, site) => {
    checkShell(site, values.command);
    return placeStep({ ...values, concurrentGroup }, site);
  },
  hintFor: key => meant.get(key) ?? hintForCaseWide(key),
});

/** `[multi]`: any number of steps. */
export const multi: Reader<readonly PlacedStep[]> = table({
  fields: {
    steps: required(
      described(listOf(groupedStep, { least: 1 }), 'Run one after another, but for groups.'),
      [],
    ),
  },
  build: ({ steps }) => steps,
  hintFor: hintForCaseWide,
});

/** `[run]`: one command. */
export const run: Reader<readonly PlacedStep[]> = mapped(
  table({
    fields: { name: optional(name), command: optional(command, 'run'), ...commandFields },
    build: (values, site) => {
      checkShell(site, values.command);
      if (!site.has('name') && !/^[A-Za-z0-9_-]+$/.test(values.command))
        site.object({ message: `a step cannot be named \`${values.command}\``, hint: 'give it a `name`' });
      return placeStep({ ...values, name: values.name ?? values.command }, site);
    },
    hintFor: key => runMeant.get(key) ?? meant.get(key) ?? hintForCaseWide(key),
  }),
  step => [step],
);

/** A shell step is a script, and a script is a shell step. */
function checkShell(site: Site, command: string): void {
  if (command === 'shell') {
    if (!site.has('script'))
      site.object({
        message: `${site.name} with the command \`shell\` needs \`script\``,
        hint: 'write the script in [scripts] and name it here',
      });
    if (site.has('kill_after'))
      site.at('kill_after').object({
        message: 'a `shell` step cannot be killed after an effect: it has none',
        hint: 'end the script where it should stop',
        atKey: true,
      });
  } else if (site.has('script') && command !== '')
    site.at('script').object({
      message: '`script` goes with the command `shell` only',
      hint: 'write command = "shell"',
      atKey: true,
    });
}

const meant: ReadonlyMap<string, string> = new Map([
  ['id', 'write `name`'],
  ['cmd', 'write `command`'],
  ['run', 'write `command`; for a script, command = "shell" and `script`'],
  ['uses', 'write `command`'],
  ['group', 'write `concurrent_group`'],
  ['concurrent', 'write `concurrent_group`'],
  ['input', 'write `stdin`'],
  ['exit', 'write expect = { exit = ... }'],
  ['exit_code', 'write expect = { exit = ... }'],
  ['expected', 'write `expect`'],
  ['timeout_seconds', 'write `timeout`'],
  ['workflow', 'write its name as the first of `args`'],
  ['sessions', '`sessions` belongs to [[worker_test.workers]]'],
]);

const runMeant: ReadonlyMap<string, string> = new Map([
  ['concurrent_group', 'a single command has no neighbours: write [[multi.steps]] for several'],
  ['steps', 'write [multi] for several steps'],
]);
