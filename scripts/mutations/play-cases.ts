import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** Time limit of a replay. A mutation that makes a replay hang does not count as caught. */
const limitMs = 120_000;

/** Line of the JSON reporter. */
export interface CaseResult {
  readonly type: string;
  readonly group: string;
  readonly name: string;
  readonly status: 'passed' | 'failed';
  readonly failures: readonly { readonly kind: string; readonly message: string }[];
}

interface Played {
  readonly results: readonly CaseResult[];
  readonly problem: string | undefined;
}

/**
 * Plays all cases of a copy from their tapes. Returns the results of the cases that were played, and the problem if some
 * were not.
 */
export function playCases(copy: string): Promise<Played> {
  return new Promise((resolve, reject) => {
    // With CI set, a replay writes nothing beside a case. TMPDIR is below the copy, so that the leftovers of a killed
    // replay are removed with it.
    const env = { ...process.env, CI: '1', NO_COLOR: '1', TMPDIR: join(copy, 'tmp') };
    mkdirSync(env.TMPDIR, { recursive: true });
    const child = spawn(process.execPath, [join('dist', 'cli', 'main.js'), 'test', '--reporter', 'json'], {
      cwd: copy,
      env,
    });
    let out = '';
    let err = '';
    let isLate = false;
    const late = setTimeout(() => {
      isLate = true;
      child.kill('SIGKILL');
    }, limitMs);
    child.stdout.setEncoding('utf8').on('data', text => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', text => {
      err += text;
    });
    child.once('error', reject);
    child.once('close', () => {
      clearTimeout(late);
      const lines = out
        .split('\n')
        .filter(line => line.startsWith('{'))
        .map(line => JSON.parse(line) as CaseResult);
      const isWhole = lines.some(({ type }) => type === 'summary');
      resolve({
        results: lines.filter(({ type }) => type === 'case'),
        problem: isWhole
          ? undefined
          : isLate
            ? `still running after ${limitMs / 1000} s`
            : `ended without a summary: ${err.trim().split('\n')[0] ?? ''}`,
      });
    });
  });
}
