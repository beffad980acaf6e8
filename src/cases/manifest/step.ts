import { nearest } from '../../core/index.ts';
import { knownType, knownTypes } from '../../core/parse-event.ts';
import { PatternError } from '../../workflow/index.ts';
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
  listOf,
  mapOf,
  mapped,
  optional,
  required,
  type TableFields,
  type TomlReader,
  type TomlSite,
  table,
  text,
  truth,
  type ValuesOf,
  whole,
} from './reader.ts';

const pattern: TomlReader<string> = mapped(text, (written, site) => {
  try {
    patternOf(written);
    return written;
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    site.refuse(error.message, error.hint ?? 'to search for literal text, leave out the slashes');
    return undefined;
  }
});

const fileState: TomlReader<ExpectedFile> = table({
  fields: {
    contains: optional(described(text, 'Text that the file must contain.')),
    absent: optional(described(truth, '`true`: the file must not exist.')),
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
      site.at('absent').refuse('must be true', 'remove the entry to leave this file unchecked');
    return { kind: 'absent' };
  },
});

const stateUnlessDotted: TomlReader<ExpectedFile> = {
  schema: fileState.schema,
  read: site => {
    const hint = site.has('contains') || site.has('absent') ? undefined : hintForDots(site);
    if (hint === undefined) return fileState.read(site);
    site.refuse('needs either `contains` or `absent`', hint);
    return undefined;
  },
};

const expectedFile: TomlReader<ExpectedFile> = byKind({
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

const expectation: TomlReader<Expectation> = table({
  fields: {
    exit: optional(
      described(whole(0, 255), 'Exit code. Defaults to 0; in a `worker_test`, any exit code is accepted.'),
    ),
    files: optional(
      described(
        mapOf(expectedFile, checkPathKey),
        'Expected files by path in the test repository. A string is the whole content.',
      ),
      {},
    ),
    main: optional(described(listOf(text), 'Subjects of all commits on the main branch, oldest first.')),
    output: optional(
      described(
        patterns(),
        'Text that the output must contain, or a regular expression between slashes, without look-around and back-references.',
      ),
      [],
    ),
    not_output: optional(
      described(patterns(), 'Text that the output must not contain, or a regular expression.'),
      [],
    ),
  },
  build: ({ not_output: notOutput, ...rest }) => ({ ...rest, notOutput }),
  hintFor: key => (Object.hasOwn(expectationKeys, key) ? `write \`${expectationKeys[key]}\`` : undefined),
});

function patterns(): TomlReader<readonly string[]> {
  return byKind({ list: listOf(pattern), text: mapped(pattern, written => [written]) });
}

/** Valid key by a key that users write instead. */
const expectationKeys: Readonly<Record<string, string>> = {
  exit_code: 'exit',
  code: 'exit',
  log: 'main',
  stdout: 'output',
  stderr: 'output',
  contains: 'output',
};

const byName: TomlReader<KillAfter> = mapped(text, (effect, site) => {
  if (knownType(effect) === undefined) return { kind: 'effect', effect, nth: 1 };
  site.refuse(`must name an effect, but \`${effect}\` is an event`, `write { event = "${effect}" }`);
  return undefined;
});

const event: TomlReader<string> = mapped(text, (name, site) => {
  if (knownType(name) !== undefined) return name;
  const guess = nearest(name, knownTypes);
  site.refuse(
    `must be a type of event, not \`${name}\``,
    guess
      ? `did you mean "${guess}"?`
      : 'list the events of a run: reprise history <run>; for an effect write { effect = "..." }',
  );
  return undefined;
});

const inDetail: TomlReader<KillAfter> = table({
  fields: {
    effect: optional(described(text, 'Name of an effect on the tape.')),
    event: optional(described(event, 'Type of an event in the history.')),
    step: optional(described(text, 'Step of the workflow that the event is about. Defaults to any step.')),
    nth: optional(
      described(whole(1), 'Occurrence of the effect or event, counted from 1. Defaults to 1.'),
      1,
    ),
  },
  build: ({ effect, event, step, nth }, site, hasUnknownKeys) => {
    if (site.has('effect') === site.has('event')) {
      if (!hasUnknownKeys) site.refuse('needs either `effect` or `event`');
      return undefined;
    }
    if (event !== undefined) return { kind: 'event', event, step, nth };
    if (effect === undefined) return undefined;
    if (site.has('step'))
      site.at('step').object({ message: '`step` is only allowed with `event`', atKey: true });
    return { kind: 'effect', effect, nth };
  },
});

/** The name of an effect, or a table that selects an effect or event. */
const killAfter: TomlReader<KillAfter> = byKind({ text: byName, table: inDetail });

/** A command with its position, which later checks report problems at. */
export interface ParsedStep {
  readonly step: CaseStep;
  readonly site: TomlSite;
}

/** Keys of a command in `[multi]`, `[run]` and `[worker_test]`. */
export const stepFields = {
  args: optional(
    described(argumentList, 'Arguments of the command: a list, or a string that is split as in a shell.'),
    [],
  ),
  stdin: optional(described(anyText, 'Standard input of the command.')),
  env: optional(described(environment, 'Environment variables of the command.'), {}),
  expect: optional(described(expectation, 'Conditions that must hold after the command.'), nothingExpected),
  timeout: optional(described(duration, 'Timeout of the command: seconds, or a string such as "1m30s".')),
  kill_after: optional(described(killAfter, 'Effect or event after which the command is killed.')),
} as const satisfies TableFields;

const commandFields = {
  ...stepFields,
  script: optional(described(text, 'Name of a script in [scripts], for the command `shell`.')),
} as const satisfies TableFields;

const name = described(stepName, 'Name of the command in the snapshot and of its tape.');
const command = described(text, 'Reprise command such as `run`, or `shell` to run a `script`.');

type StepValues = ValuesOf<typeof stepFields> & Pick<CaseStep, 'name' | 'command'> & Partial<CaseStep>;

export function parseStep(
  { kill_after: killAfter, timeout, ...values }: StepValues,
  site: TomlSite,
): ParsedStep {
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

const groupedStep: TomlReader<ParsedStep> = table({
  fields: {
    name: required(name, ''),
    command: required(command, ''),
    concurrent_group: optional(
      described(text, 'Group name. Adjacent commands of the same group run in parallel.'),
    ),
    ...commandFields,
  },
  build: ({ concurrent_group: concurrentGroup, ...values }, site) => {
    checkShell(site, values.command);
    return parseStep({ ...values, concurrentGroup }, site);
  },
  hintFor: key => keyHints.get(key) ?? hintForCaseWide(key),
});

/** `[multi]`: several commands. */
export const multi: TomlReader<readonly ParsedStep[]> = table({
  fields: {
    steps: required(
      described(listOf(groupedStep, { min: 1 }), 'Commands. They run one after another, except in groups.'),
      [],
    ),
  },
  build: ({ steps }) => steps,
  hintFor: hintForCaseWide,
});

/** `[run]`: one command. */
export const run: TomlReader<readonly ParsedStep[]> = mapped(
  table({
    fields: { name: optional(name), command: optional(command, 'run'), ...commandFields },
    build: (values, site) => {
      checkShell(site, values.command);
      if (!site.has('name') && !/^[A-Za-z0-9_-]+$/.test(values.command))
        site.object({
          message: `the command needs a \`name\`, because \`${values.command}\` is not a valid one`,
          hint: 'add a `name` of letters, digits, - and _',
        });
      return parseStep({ ...values, name: values.name ?? values.command }, site);
    },
    hintFor: key => runKeyHints.get(key) ?? keyHints.get(key) ?? hintForCaseWide(key),
  }),
  step => [step],
);

/** Checks that the command is `shell` if and only if there is a `script`. */
function checkShell(site: TomlSite, command: string): void {
  if (command === 'shell') {
    if (!site.has('script'))
      site.object({
        message: 'the command `shell` needs a `script`',
        hint: 'define the script in [scripts], and set `script` to its name',
      });
    if (site.has('kill_after'))
      site.at('kill_after').object({
        message: '`kill_after` is not supported by `shell` commands, which have no effects',
        hint: 'exit in the script instead',
        atKey: true,
      });
  } else if (site.has('script') && command !== '')
    site.at('script').object({
      message: '`script` is only allowed with the command `shell`',
      hint: 'write command = "shell"',
      atKey: true,
    });
}

const keyHints: ReadonlyMap<string, string> = new Map([
  ['id', 'write `name`'],
  ['cmd', 'write `command`'],
  ['run', 'write `command`; for a script, write command = "shell" and `script`'],
  ['uses', 'write `command`'],
  ['group', 'write `concurrent_group`'],
  ['concurrent', 'write `concurrent_group`'],
  ['input', 'write `stdin`'],
  ['exit', 'write expect = { exit = ... }'],
  ['exit_code', 'write expect = { exit = ... }'],
  ['expected', 'write `expect`'],
  ['timeout_seconds', 'write `timeout`'],
  ['workflow', 'pass the workflow as the first of `args`'],
  ['sessions', '`sessions` is only allowed in [[worker_test.workers]]'],
]);

const runKeyHints: ReadonlyMap<string, string> = new Map([
  ['concurrent_group', '[run] is a single command; write [[multi.steps]] for several'],
  ['steps', 'write [multi] for several commands'],
]);
