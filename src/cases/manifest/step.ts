import { knownType, knownTypes } from '../../core/parse-event.ts';
import { nearest } from '../../core/suggest.ts';
import {
  argumentList,
  checkPathKey,
  duration,
  environment,
  hintForCaseWide,
  hintForDots,
  patternOf,
  stepName,
} from './fields.ts';
import type { CaseStep, Expectation, ExpectedFile, KillAfter } from './manifest.ts';
import {
  anyText,
  byKind,
  described,
  type Fields,
  listOf,
  mapOf,
  mapped,
  optional,
  type Reader,
  required,
  type Site,
  table,
  text,
  truth,
  type ValuesOf,
  whole,
} from './reader.ts';

const pattern: Reader<string> = mapped(text, (written, site) => {
  try {
    patternOf(written);
    return written;
  } catch (error) {
    site.refuse(
      `is no regular expression: ${reasonOf(error)}`,
      'a text that does not begin and end with / is searched for as it is',
    );
    return undefined;
  }
});

/** Engines differ in how they begin the message. */
const reasonOf = (error: unknown): string =>
  (/[^:]*$/.exec(error instanceof Error ? error.message : '')?.[0] ?? '').trim();

const fileState: Reader<ExpectedFile> = table({
  fields: {
    contains: optional(described(text, 'A text that the file must hold.')),
    absent: optional(described(truth, '`true`: there must be no such file.')),
  },
  build: ({ contains, absent }, site, hasUnknownKeys) => {
    if (site.has('contains') === site.has('absent')) {
      if (!hasUnknownKeys)
        site.refuse(
          'needs either `contains` or `absent`',
          'write "the whole content", { contains = "a part" } or { absent = true }',
        );
      return undefined;
    }
    if (contains !== undefined) return { kind: 'contains', text: contains };
    if (absent === false)
      site.at('absent').refuse('must be true', 'leave the file out to expect nothing of it');
    return { kind: 'absent' };
  },
});

const stateUnlessDotted: Reader<ExpectedFile> = {
  schema: fileState.schema,
  read: site => {
    const hint = site.has('contains') || site.has('absent') ? undefined : hintForDots(site);
    if (hint === undefined) return fileState.read(site);
    site.refuse('needs either `contains` or `absent`', hint);
    return undefined;
  },
};

const expectedFile: Reader<ExpectedFile> = byKind({
  text: mapped(anyText, content => ({ kind: 'exact', content })),
  table: stateUnlessDotted,
});

const nothingExpected: Expectation = {
  exit: undefined,
  files: {},
  main: undefined,
  output: [],
  notOutput: [],
};

const expectation: Reader<Expectation> = table({
  fields: {
    exit: optional(
      described(whole(0, 255), 'The exit code: 0 unless it is set, but in a `worker_test` any.'),
    ),
    files: optional(
      described(
        mapOf(expectedFile, checkPathKey),
        'Files by path in the test repository: a text is the whole content.',
      ),
      {},
    ),
    main: optional(described(listOf(text), 'The subjects of all commits on the main branch, oldest first.')),
    output: optional(
      described(patterns(), 'What the step prints: a text, or a regular expression between slashes.'),
      [],
    ),
    not_output: optional(described(patterns(), 'What it does not print.'), []),
  },
  build: ({ not_output: notOutput, ...rest }) => ({ ...rest, notOutput }),
  hintFor: key => (Object.hasOwn(expectationMeant, key) ? `write \`${expectationMeant[key]}\`` : undefined),
});

function patterns(): Reader<readonly string[]> {
  return byKind({ list: listOf(pattern), text: mapped(pattern, written => [written]) });
}

const expectationMeant: Readonly<Record<string, string>> = {
  exit_code: 'exit',
  code: 'exit',
  log: 'main',
  stdout: 'output',
  stderr: 'output',
  contains: 'output',
};

const byName: Reader<KillAfter> = mapped(text, (effect, site) => {
  if (knownType(effect) === undefined) return { kind: 'effect', effect, nth: 1 };
  site.refuse(`names the event \`${effect}\` as if it were an effect`, `write { event = "${effect}" }`);
  return undefined;
});

const event: Reader<string> = mapped(text, (name, site) => {
  if (knownType(name) !== undefined) return name;
  const guess = nearest(name, knownTypes);
  site.refuse(
    `must be an event of a history, not \`${name}\``,
    guess
      ? `did you mean "${guess}"?`
      : '`reprise history <run>` shows events; for an effect write { effect = "..." }',
  );
  return undefined;
});

const inDetail: Reader<KillAfter> = table({
  fields: {
    effect: optional(described(text, 'The name of an effect, as it is on the tape.')),
    event: optional(described(event, 'The type of an event of the history.')),
    step: optional(
      described(text, 'The step of the workflow that the event is about; any unless it is set.'),
    ),
    nth: optional(described(whole(1), 'Which of them, counted from 1.'), 1),
  },
  build: ({ effect, event, step, nth }, site, hasUnknownKeys) => {
    if (site.has('effect') === site.has('event')) {
      if (!hasUnknownKeys) site.refuse('needs either `effect` or `event`');
      return undefined;
    }
    if (event !== undefined) return { kind: 'event', event, step, nth };
    if (effect === undefined) return undefined;
    if (site.has('step')) site.at('step').object({ message: '`step` goes with `event` only', atKey: true });
    return { kind: 'effect', effect, nth };
  },
});

/** The name of an effect, or a table that says which effect or event. */
const killAfter: Reader<KillAfter> = byKind({ text: byName, table: inDetail });

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
