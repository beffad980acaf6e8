import { spawn } from 'node:child_process';
import type { CommandIo } from '../project/host.ts';

/** Runs a script of a case for real, in the test repository. Gives its exit code. */
export function runScript({
  script,
  io,
}: {
  readonly script: string;
  readonly io: CommandIo;
}): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn('bash', ['-e', '-o', 'pipefail', '-s'], {
      cwd: io.cwd,
      env: { ...io.env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    child.stdin.on('error', () => {}).end(script);
    child.stdout.setEncoding('utf8').on('data', (text: string) => io.out(text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => io.err(text));
    io.interrupt.addEventListener('abort', () => child.kill('SIGTERM'), { once: true });
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? (signal ? 143 : 1)));
  });
}
