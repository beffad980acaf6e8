import { statSync } from 'node:fs';
import type { ErrorData } from '../core/errors.ts';

/** Why nothing was started at all: its output would have been lost. */
export const describeLogFailure = (thrown: unknown, logFile: string): ErrorData =>
  failure(
    `cannot write the log file ${logFile}: ${messageOf(thrown)}`,
    'check the folder, its permissions and the disk',
  );

/** Why a process could not be started, in words that say what to do. */
export function describeStartFailure(thrown: unknown, argv: readonly string[], cwd: string): ErrorData {
  const program = argv[0] ?? '';
  const place = problemWithFolder(cwd);
  if (place)
    return failure(
      `cannot start ${program}: ${place}`,
      'create the folder first, or correct the working directory',
    );
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
  switch (code) {
    case 'ENOENT':
      return failure(
        `cannot start ${program}: no such program`,
        'install it, or check its spelling and PATH',
      );
    case 'EACCES':
      return failure(`cannot start ${program}: permission denied`, `make it executable: chmod +x ${program}`);
    case 'E2BIG':
      return failure(
        `cannot start ${program}: its arguments and environment are too long`,
        'hand long values over in a file instead',
      );
    case 'EAGAIN':
    case 'EMFILE':
    case 'ENFILE':
    case 'ENOMEM':
      return failure(
        `cannot start ${program}: out of resources (${code})`,
        'lower runtime.max_concurrent_workers',
      );
    default:
      return failure(`cannot start ${program}: ${messageOf(thrown)}`);
  }
}

/** A missing folder and a missing program give the same error code. */
function problemWithFolder(cwd: string): string | undefined {
  try {
    return statSync(cwd).isDirectory() ? undefined : `${cwd} is not a folder`;
  } catch {
    return `the folder ${cwd} does not exist`;
  }
}

const failure = (message: string, hint?: string): ErrorData => ({
  code: 'SPAWN_FAILED',
  message,
  ...(hint ? { hint } : {}),
});

const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));
