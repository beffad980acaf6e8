import { Command } from 'commander';
import { runProgram } from '../../src/cli/program.ts';
import type { CommandIo } from '../../src/project/host.ts';

/** The parts of `CommandIo` that declaring commands uses. */
const io = { out: () => {}, err: () => {}, columns: 80 } as unknown as CommandIo;

/** Returns the command line that the CLI declares. Nothing runs: the program is captured when it starts to parse. */
export async function declaredProgram(): Promise<Command> {
  const { parseAsync } = Command.prototype;
  const declared: Command[] = [];
  Command.prototype.parseAsync = async function () {
    declared.push(this);
    return this;
  };
  try {
    await runProgram([], io);
  } finally {
    Command.prototype.parseAsync = parseAsync;
  }
  const [program] = declared;
  if (!program) throw new Error('the CLI no longer parses with commander: adapt this file');
  return program;
}
