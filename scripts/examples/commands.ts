import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** What the check of an example may do in its folder. */
export function commandsIn(folder: string, cli: string) {
  const start = (...args: string[]) =>
    new Running(spawn(process.execPath, args, { cwd: folder, env: { ...process.env, CI: 'true' } }));
  return {
    folder,
    path: (name: string) => join(folder, name),
    git: (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim(),
    /** Runs a program of the example to its end. */
    node: (...args: string[]) => start(...args).end(),
    /** Starts a command that prints NDJSON, and leaves it running. */
    begin: (...args: string[]) => start(cli, ...args, '--json'),
    /** Runs a command to its end. */
    reprise: (...args: string[]) => start(cli, ...args).end(),
    /** Runs a command that prints NDJSON to its end; `result` is its last line. */
    json: (...args: string[]) => start(cli, ...args, '--json').end(),
  };
}

/** A line of NDJSON that a command prints while it works. */
export interface Line {
  readonly type: string;
  readonly runId: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** How a run ended, as its last line says. */
export interface Result {
  readonly runId: string;
  readonly output?: Readonly<Record<string, unknown>>;
  readonly waiting?: readonly { readonly message: string }[];
  readonly error?: { readonly code: string };
}

export interface Ended {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
  /** Of a command that prints NDJSON. */
  readonly result: Result;
}

const noResult: Result = { runId: '' };

export type Commands = ReturnType<typeof commandsIn>;

/** A process under way. */
class Running {
  readonly #lines: string[] = [];
  #errors = '';
  readonly #watchers = new Set<() => void>();
  readonly #ended: Promise<number | null>;

  constructor(child: ChildProcessWithoutNullStreams) {
    child.stderr.on('data', (chunk: Buffer) => {
      this.#errors += chunk;
    });
    createInterface({ input: child.stdout }).on('line', line => {
      this.#lines.push(line);
      for (const watch of this.#watchers) watch();
    });
    this.#ended = new Promise((resolve, reject) => child.on('error', reject).on('close', resolve));
  }

  /** The first line of NDJSON that fits. Rejects if the process ends without it. */
  until(fits: (line: Line) => boolean): Promise<Line> {
    const found = new Promise<Line>(resolve => {
      const watch = () => {
        const line = this.#lines.map(text => JSON.parse(text) as Line).find(fits);
        if (line) resolve(line);
      };
      this.#watchers.add(watch);
      watch();
    });
    const tooLate = this.#ended.then(code =>
      Promise.reject(new Error(`ended with ${code} before that\n${this.#errors}`)),
    );
    tooLate.catch(() => {});
    return Promise.race([found, tooLate]);
  }

  async end(): Promise<Ended> {
    const code = await this.#ended;
    const last = this.#lines.at(-1) ?? '';
    return {
      code,
      output: this.#lines.join('\n'),
      errors: this.#errors,
      result: last.startsWith('{') ? JSON.parse(last) : noResult,
    };
  }
}
