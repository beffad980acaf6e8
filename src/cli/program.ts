import { Command, CommanderError } from 'commander';
import { type CommandIo, exitCodes } from '../project/index.ts';
import {
  registerTestCommands,
  registerToolCommands,
  registerViewCommands,
  registerWorkerCommands,
} from './other-commands.ts';
import { registerRunCommands } from './run-commands.ts';
import { version } from './version.ts';

/** Collects the commands of the program. */
export interface Registry {
  readonly io: CommandIo;
  /** This program, for test cases that run its commands. */
  readonly program: typeof runProgram;
  /** Adds a command. `work` gets the parsed arguments and options, and resolves with the exit code. */
  add(declaration: string, work: Work): Command;
}

type Work = (
  args: readonly (string | undefined)[],
  options: Readonly<Record<string, unknown>>,
) => Promise<number>;

const usage = `
Start here:
  reprise demo                       watch two workers survive a crash
  reprise demo fan-out               watch five parallel agents and a resume
  reprise init                       add settings, agents and examples
  reprise run deploy --input env=qa  run .reprise/workflows/deploy.yaml
  reprise run ./path.yaml            run any file
  reprise run --agent claude --prompt "Fix the failing test" --concurrency 3
  reprise list                       list runs with their status
  reprise resume                     resume the newest run

Exit codes: 0 ok, 1 failed, 2 wrong usage or definition, 3 waiting for an
approval or signal, 4 over budget, 5 replay diverged, 6 cannot land,
130 and 143 stopped by a signal.`;

const stateDirHelp = 'folder of the store and logs (default: $REPRISE_STATE_DIR, or .git/reprise)';

/** Runs the command that the arguments name and resolves with its exit code. Rejects with the error of the command. */
export async function runProgram(args: readonly string[], io: CommandIo): Promise<number> {
  let exitCode: number = exitCodes.ok;
  const program = new Command('reprise')
    .description(
      'Run coding agents and workflow steps in parallel. Resume after any crash. Turn any run into a test.',
    )
    .version(version(), '-v, --version', 'print the version')
    .addHelpText('after', usage)
    .helpOption('-h, --help', 'show this help')
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
      command.showHelpAfterError(`  hint: see its options: reprise ${command.name()} --help`);
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
  program.commandsGroup('Run workflows and agents:');
  registerRunCommands(registry);
  program.commandsGroup('Work on tasks:');
  registerWorkerCommands(registry);
  program.commandsGroup('Inspect runs:');
  registerViewCommands(registry);
  program.commandsGroup('Test:');
  registerTestCommands(registry);
  program.commandsGroup('Set up and maintain:');
  registerToolCommands(registry);
  program.helpCommand('help [command]', 'show the help of a command');
  for (const command of program.commands) command.option('--state-dir <folder>', stateDirHelp);
  try {
    await program.parseAsync([...args], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  }
  return exitCode;
}
