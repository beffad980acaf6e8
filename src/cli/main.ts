#!/usr/bin/env node
import { version } from './version.ts';

const args = process.argv.slice(2);

let folder: string | undefined;
try {
  folder = process.cwd();
} catch {
  // The folder was deleted.
}

// Scripts and shell prompts ask for the version often, so it is printed before anything else is loaded.
if (args.length === 1 && (args[0] === '--version' || args[0] === '-v')) {
  process.stdout.write(`${version()}\n`);
} else if (folder === undefined) {
  process.stderr.write(
    'error[USAGE]: the current folder no longer exists\n  hint: change to another folder: cd ~\n',
  );
  process.exitCode = 2;
} else {
  const { runProcess } = await import('./run-process.ts');
  await runProcess(args);
}
