import { Command } from 'commander';
import { runProgram } from '../../dist/cli/program.js';

const io = { out: () => {}, err: () => {}, columns: 80 };

/** The command line as the CLI declares it, without anything being run: the program is caught when it begins to parse. */
export async function declaredProgram() {
  const { parseAsync } = Command.prototype;
  let declared;
  Command.prototype.parseAsync = async function () {
    declared = this;
    return this;
  };
  try {
    await runProgram([], io);
  } finally {
    Command.prototype.parseAsync = parseAsync;
  }
  if (!declared) throw new Error('the CLI no longer parses with commander: adapt this file');
  return declared;
}
