import { exitCodes } from '../../dist/project/exit-codes.js';
import { block, code, matchNotes, page, table } from './markdown.mjs';
import { declaredProgram } from './program.mjs';

const exitNotes = {
  ok: 'The run completed, or the command did what it was asked.',
  failed: 'The run failed or was cancelled, or the command could not do what it was asked.',
  usage: 'The command line, the definition or the input is wrong. Nothing was run.',
  needsPerson:
    'The run waits for a person or a signal, or an agent was denied something or is not logged in.',
  budget: 'The run used up its budget, or an agent its plan.',
  diverged: 'A replay found that the history does not fit the definition.',
  cannotLand: 'Work could not be landed. Nothing has moved.',
};

const variables = [
  [
    '`REPRISE_STATE_DIR`',
    'Where the store and logs are, relative to the root of the project; `--state-dir` wins.',
  ],
  ['`REPRISE_MAX_CONCURRENT_WORKERS`', 'How many steps may run at once; `--max-concurrent` wins.'],
  ['`REPRISE_DEBUG`', 'Errors are printed with their stack.'],
  ['`NO_COLOR`, `FORCE_COLOR`', 'No colours, or colours even without a terminal. `NO_COLOR` wins.'],
  ['`CI`', 'Nothing asks and nothing is redrawn, even at a terminal.'],
];

const usageOf = command =>
  ['reprise', command.name(), ...command.registeredArguments.map(argument), '[options]'].join(' ');

function argument(declared) {
  const name = declared.name() + (declared.variadic ? '...' : '');
  return declared.required ? `<${name}>` : `[${name}]`;
}

function section(command) {
  const aliases = command.aliases();
  const also =
    aliases.length > 0 ? ` Also: ${aliases.map(alias => code(`reprise ${alias}`)).join(', ')}.` : '';
  const rows = command.options.map(({ flags, description }) => [code(flags), description]);
  return [
    `## reprise ${command.name()}`,
    `${command.description()}${also}`,
    block('sh', usageOf(command)),
    table(['option', 'meaning'], rows),
  ].join('\n\n');
}

/** Every command with its arguments and options. */
export async function cliReference() {
  const { commands } = await declaredProgram();
  matchNotes('exit codes', Object.keys(exitCodes), exitNotes);
  const exits = Object.entries(exitCodes).map(([name, value]) => [value, exitNotes[name]]);
  return page(
    'Command line',
    'A run is named by its id or the first characters of it. Standard output is data, standard error is for people. `reprise help <command>` shows what is below.',
    table(
      ['command', 'what it does'],
      commands.map(command => [
        `[${code(command.name())}](#reprise-${command.name()})`,
        command.description(),
      ]),
    ),
    ...commands.map(section),
    '## Exit codes',
    table(['code', 'meaning'], [...exits, ['129, 130, 143', 'Stopped by SIGHUP, Ctrl-C or SIGTERM.']]),
    '## Environment',
    table(['variable', 'meaning'], variables),
  );
}
