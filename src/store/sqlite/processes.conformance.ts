import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, onTestFinished } from 'vitest';
import { programOf } from '../../../test/support/program.ts';

/** Path of a built program of `fixtures/`. */
const fixture = (name: string) => programOf(join(import.meta.dirname, 'fixtures', `${name}.ts`));

const programs = { claimant: await fixture('claimant'), writer: await fixture('writer') };

type Line = Readonly<Record<string, unknown>>;

/** A program of `fixtures/` in its own process. It reads lines from stdin and prints JSON lines. */
export class StoreProcess {
  readonly lines: Line[] = [];
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown[]>;
  readonly #waiting = new Set<() => void>();
  #errors = '';

  constructor(program: keyof typeof programs, ...args: readonly string[]) {
    const child = spawn(process.execPath, [programs[program], ...args], { stdio: 'pipe' });
    this.#child = child;
    this.#ended = once(child, 'close');
    child.stderr.setEncoding('utf8').on('data', text => {
      this.#errors += text;
    });
    createInterface({ input: child.stdout }).on('line', line => {
      this.lines.push(JSON.parse(line));
      for (const wake of this.#waiting) wake();
    });
  }

  /** Resolves when it has printed `count` lines; rejects if it ends before. */
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

  send(line = 'go'): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  /** Closes its stdin. */
  finish(): void {
    this.#child.stdin?.end();
  }

  /** Resolves when it has ended by itself; fails the test if it had an error. */
  async done(): Promise<void> {
    const [code] = await this.#ended;
    expect(this.#errors).toBe('');
    expect(code).toBe(0);
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  /** Values of `key` in the printed lines. */
  values(key: string): unknown[] {
    return this.lines.filter(line => key in line).map(line => line[key]);
  }
}

/** Starts all of them at the same moment. */
export async function startTogether(writers: readonly StoreProcess[]): Promise<void> {
  for (const each of writers) onTestFinished(() => each.kill());
  await Promise.all(writers.map(each => each.printed(1)));
  for (const each of writers) each.send();
}

export async function runTogether(writers: readonly StoreProcess[]): Promise<void> {
  await startTogether(writers);
  await Promise.all(writers.map(each => each.done()));
}
