import { errorCatalogue, RepriseError } from '../../dist/core/errors.js';
import { exitCodeOfError } from '../../dist/project/exit-codes.js';
import { code, page, table } from './markdown.mjs';

/** Every code with its meaning, and what the CLI exits with when a command or a run ends with it. */
export function errorsReference() {
  const rows = Object.entries(errorCatalogue).map(([name, meaning]) => [
    code(name),
    meaning,
    exitCodeOfError(new RepriseError(name, '')),
  ]);
  return page(
    'Errors',
    'Every error that Reprise raises on purpose has a code. A code never changes its meaning. The last column is what the CLI exits with when a command, or the run that it works on, ends with that error; [exit codes](../guide/ci.md) are explained in the guide.',
    'A step may also fail with a code that is not listed here: if a function throws an error that has a `code` of its own (such as `ENOENT`), that code is kept.',
    table(['code', 'meaning', 'exit code'], rows),
  );
}
