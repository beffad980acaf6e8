import { type ErrorCode, errorCatalogue, RepriseError } from '../../src/core/errors.ts';
import { exitCodeOfError } from '../../src/project/host.ts';
import { code, page, table } from './markdown.ts';

/** The page on errors: every code with its meaning and the exit code of the CLI. */
export function errorsReference(): string {
  const rows = Object.entries(errorCatalogue).map(([name, meaning]) => [
    code(name),
    meaning,
    exitCodeOfError(new RepriseError(name as ErrorCode, '')),
  ]);
  return page(
    'Errors',
    'Every error that Reprise raises has a code. The meaning of a code never changes. The last column is the exit code of the CLI when a command or its run ends with that error; the guide explains the [exit codes](../guide/ci.md).',
    'A step can also fail with a code that is not listed here: if a function throws an error with its own `code`, such as `ENOENT`, that code is kept.',
    table(['code', 'meaning', 'exit code'], rows),
  );
}
