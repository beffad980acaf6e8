import { Command, CommanderError } from 'commander';
import { exitCodes } from '../project/exit-codes.ts';
import type { CommandIo } from '../project/host.ts';
import {
  registerTestCommands,
  registerToolCommands,
  registerViewCommands,
  registerWorkerCommands,
} from './other-commands.ts';
import { registerRunCommands } from './run-commands.ts';
import { version } from './version.ts';

/** Registers a command: `work` is called with what was typed, and gives the exit code. */
export interface Registry {
  readonly io: CommandIo;
  /** This program, for cases that carry out commands. */
  readonly program: typeof runProgram;
  add(declaration: string, work: Work): Command;
}

type Work = (
  args: readonly (string | undefined)[],
  options: Readonly<Record<string, unknown>>,
) => Promise<number>;

const usage = `
Start here:
  reprise demo                       see workers, a crash and a conflict, in seconds
  reprise demo fan-out               see five agents at once, a crash and a resume
  reprise init                       set this repository up: settings, agents, examples
  reprise run deploy --input env=qa  run .reprise/workflows/deploy.yaml
  reprise run ./path.yaml            run any file
  reprise run --agent claude --prompt "Fix the failing test" --concurrency 3
  reprise list                       what ran, and how it stands
  reprise resume                     go on with the newest run

Exit codes: 0 ok, 1 failed, 2 wrong use or definition, 3 waits for a person, 4 over budget, 5 replay diverged,
6 cannot land, 130 and 143 stopped by a signal.`;

const stateDirHelp = 'where the store and logs are (default: .reprise/state; also $REPRISE_STATE_DIR)';

/** Carries out what the arguments ask for and gives the exit code. Throws what the command throws. */
export async function runProgram(args: readonly string[], io: CommandIo): Promise<number> {
  let exitCode: number = exitCodes.ok;
  const program = new Command('reprise')
    .description(
      'Run coding agents and workflow steps in parallel. Resume after any crash. Turn any run into a test.',
    )
    .version(version(), '-v, --version', 'print the version')
    .addHelpText('after', usage)
    .helpOption('-h, --help', 'show this help')
    .helpCommand('help [command]', 'show the help of a command')
    .exitOverride()
    .configureOutput({
      writeOut: io.out,
      writeErr: io.err,
      getOutHelpWidth: () => io.columns,
      getErrHelpWidth: () => io.columns,
      outputError: (text, write) => write(text.replace(/^error: /, 'error[USAGE]: ')),
    });
  const registry: Registry = {
    io,
    program: runProgram,
    add: (declaration, work) => {
      const command = program.command(declaration);
      command.showHelpAfterError(`  hint: see what it takes: reprise ${command.name()} --help`);
      command.action(async (...given: unknown[]) => {
        const typed = given.slice(0, -2).flat() as (string | undefined)[];
        const options = command.opts<{ readonly stateDir?: string }>();
        try {
          exitCode = await work(typed, options);
        } catch (error) {
          const { carryStateDir } = await import('./carry-state-dir.ts');
          throw carryStateDir(error, options.stateDir);
        }
      });
      return command;
    },
  };
  program.showHelpAfterError('  hint: see all commands: reprise --help');
  registerRunCommands(registry);
  registerWorkerCommands(registry);
  registerViewCommands(registry);
  registerTestCommands(registry);
  registerToolCommands(registry);
  for (const command of program.commands) command.option('--state-dir <folder>', stateDirHelp);
  try {
    await program.parseAsync([...args], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  }
  return exitCode;
}
