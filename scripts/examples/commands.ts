import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** Commands for checking an example in its folder. */
export function commandsIn(folder: string, cli: string) {
  const start = (...args: string[]) =>
    new Running(spawn(process.execPath, args, { cwd: folder, env: { ...process.env, CI: 'true' } }));
  return {
    folder,
    path: (name: string) => join(folder, name),
    git: (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim(),
    /** Runs a program of the example and waits for it. */
    node: (...args: string[]) => start(...args).end(),
    /** Starts a command that prints NDJSON without waiting for it. */
    begin: (...args: string[]) => start(cli, ...args, '--json'),
    /** Runs a command and waits for it. */
    reprise: (...args: string[]) => start(cli, ...args).end(),
    /** Runs a command that prints NDJSON and waits for it. `result` is its last line. */
    json: (...args: string[]) => start(cli, ...args, '--json').end(),
  };
}

/** Line of NDJSON that a running command prints. */
export interface Line {
  readonly type: string;
  readonly runId: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Result of a run: the last line of NDJSON. */
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
  /** Last line of a command that prints NDJSON. */
  readonly result: Result;
}

const noResult: Result = { runId: '' };

export type Commands = ReturnType<typeof commandsIn>;

/** A running process. */
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

  /** Resolves to the first matching line of NDJSON. Rejects if the process ends without one. */
  until(matches: (line: Line) => boolean): Promise<Line> {
    const found = new Promise<Line>(resolve => {
      const watch = () => {
        const line = this.#lines.map(text => JSON.parse(text) as Line).find(matches);
        if (line) resolve(line);
      };
      this.#watchers.add(watch);
      watch();
    });
    const tooLate = this.#ended.then(code =>
      Promise.reject(new Error(`ended with ${code} before the expected line\n${this.#errors}`)),
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
