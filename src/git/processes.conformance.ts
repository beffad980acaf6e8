import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, onTestFinished } from 'vitest';
import { programOf } from '../../test/support/program.ts';
import { plainEnvironment } from './test-support.ts';

const program = await programOf(join(import.meta.dirname, 'fixtures/worker.ts'));

export type Line = Readonly<Record<string, unknown>>;

/** One of several processes that share a repository. */
export class Worker {
  readonly lines: Line[] = [];
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown[]>;
  readonly #waiting = new Set<() => void>();
  #errors = '';

  constructor(options: { task: string; root: string; name: string; rounds: number }) {
    const { task, root, name, rounds } = options;
    const args = [program, task, root, name, String(rounds)];
    const child = spawn(process.execPath, args, { stdio: 'pipe', env: plainEnvironment });
    this.#child = child;
    this.#ended = once(child, 'close');
    child.stderr.setEncoding('utf8').on('data', text => {
      this.#errors += text;
    });
    createInterface({ input: child.stdout }).on('line', line => {
      this.lines.push(JSON.parse(line));
      for (const wake of this.#waiting) wake();
    });
    onTestFinished(() => this.kill());
  }

  /** Resolves when the process has printed `count` lines. The first line reports that it is ready. */
  async printed(count: number): Promise<void> {
    while (this.lines.length < count) {
      const line = new Promise<'line'>(resolve => {
        const wake = () => {
          this.#waiting.delete(wake);
          resolve('line');
        };
        this.#waiting.add(wake);
      });
      const first = await Promise.race([line, this.#ended]);
      if (first !== 'line' && this.lines.length < count) throw new Error(`ended early: ${this.#errors}`);
    }
  }

  start(): void {
    this.#child.stdin?.write('go\n');
  }

  async done(): Promise<void> {
    const [code] = await this.#ended;
    expect(this.#errors).toBe('');
    expect(code).toBe(0);
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  said<T>(key: string): T[] {
    return this.lines.filter(line => key in line).map(line => line[key] as T);
  }
}

/** Starts all processes at the same moment, and waits until they have ended without an error. */
export async function runTogether(workers: readonly Worker[]): Promise<void> {
  await Promise.all(workers.map(each => each.printed(1)));
  for (const each of workers) each.start();
  await Promise.all(workers.map(each => each.done()));
}
