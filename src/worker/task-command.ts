import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { RepriseError } from '../core/errors.ts';
import type { Environment } from '../engine/environment.ts';

const mostPrinted = 16 * 1024 * 1024;
const mostMs = 60_000;

/** What the command prints that lists the tasks of a project. Throws CONFIG_INVALID if it fails. */
export function printedBy(
  { projectRoot, env }: Pick<Environment, 'projectRoot' | 'env'>,
  command: string,
  signal: AbortSignal,
): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(
      'sh',
      ['-c', command],
      { cwd: projectRoot, env, signal, maxBuffer: mostPrinted, timeout: mostMs, killSignal: 'SIGKILL' },
      (error, stdout, stderr) => {
        if (!error) return resolve(stdout);
        const said = stderr.trim().split('\n').at(-1) ?? '';
        reject(
          new RepriseError(
            'CONFIG_INVALID',
            `the command that lists the tasks failed: ${command}\n${said === '' ? error.message : said}`,
            { hint: 'run it by hand, and mend `tasks.command` in reprise.yaml', cause: error },
          ),
        );
      },
    );
  });
}

/** By which it is noticed that something else was printed. */
export const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');
