import type { Argument, Command } from 'commander';
import { exitCodes } from '../../src/project/host.ts';
import { block, code, matchNotes, page, table } from './markdown.ts';
import { declaredProgram } from './program.ts';

const exitNotes: Readonly<Record<string, string>> = {
  ok: 'The run completed, or the command succeeded.',
  failed: 'The run failed or was cancelled, or the command failed.',
  usage: 'The command line, the definition or the input is invalid. Nothing was run.',
  needsPerson:
    'The run waits for a person or a signal, or an agent was denied a permission or is not logged in.',
  budget: 'The run exceeded its budget, or an agent used up its plan.',
  diverged: 'A replay found that the history does not match the definition.',
  cannotLand: 'Work could not be landed. The target branch has not moved.',
};

const variables = [
  [
    '`REPRISE_STATE_DIR`',
    'Folder of the store and the logs, relative to the project root. `--state-dir` takes precedence.',
  ],
  [
    '`REPRISE_MAX_CONCURRENT_WORKERS`',
    'Maximum number of steps that run in parallel. `--max-concurrent` takes precedence.',
  ],
  ['`REPRISE_DEBUG`', 'Prints errors with their stack trace.'],
  [
    '`NO_COLOR`, `FORCE_COLOR`',
    'Disables colors, or enables them without a terminal. `NO_COLOR` takes precedence.',
  ],
  ['`CI`', 'Disables prompts and live views, even in a terminal.'],
];

const usageOf = (command: Command) =>
  ['reprise', command.name(), ...command.registeredArguments.map(argument), '[options]'].join(' ');

function argument(declared: Argument): string {
  const name = declared.name() + (declared.variadic ? '...' : '');
  return declared.required ? `<${name}>` : `[${name}]`;
}

function section(command: Command): string {
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

/** The page on the CLI: every command with its arguments and options. */
export async function cliReference(): Promise<string> {
  const { commands } = await declaredProgram();
  matchNotes('exit codes', Object.keys(exitCodes), exitNotes);
  const exits = Object.entries(exitCodes).map(([name, value]) => [value, exitNotes[name]]);
  return page(
    'Command line',
    'To name a run, use its id or the first characters of it. Commands print data to standard output and messages for people to standard error. `reprise help <command>` prints the help of a command.',
    table(
      ['command', 'description'],
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
