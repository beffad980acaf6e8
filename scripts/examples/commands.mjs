import { execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** What the check of an example may do in its folder. */
export function commandsIn(folder, cli) {
  const start = (...args) =>
    new Running(spawn(process.execPath, args, { cwd: folder, env: { ...process.env, CI: 'true' } }));
  return {
    folder,
    path: name => join(folder, name),
    git: (...args) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim(),
    /** Runs a program of the example to its end. */
    node: (...args) => start(...args).end(),
    /** Starts a command that prints NDJSON, and leaves it running. */
    begin: (...args) => start(cli, ...args, '--json'),
    /** Runs a command to its end. */
    reprise: (...args) => start(cli, ...args).end(),
    /** Runs a command that prints NDJSON to its end; `result` is its last line. */
    json: (...args) => start(cli, ...args, '--json').end(),
  };
}

/** A process under way. */
class Running {
  #lines = [];
  #errors = '';
  #watchers = new Set();
  #ended;

  constructor(child) {
    child.stderr.on('data', chunk => {
      this.#errors += chunk;
    });
    createInterface({ input: child.stdout }).on('line', line => {
      this.#lines.push(line);
      for (const watch of this.#watchers) watch();
    });
    this.#ended = new Promise((resolve, reject) => child.on('error', reject).on('close', resolve));
  }

  /** The first line of NDJSON that fits. Rejects if the process ends without it. */
  until(fits) {
    const found = new Promise(resolve => {
      const watch = () => {
        const line = this.#lines.map(text => JSON.parse(text)).find(fits);
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

  async end() {
    const code = await this.#ended;
    const last = this.#lines.at(-1) ?? '';
    return {
      code,
      output: this.#lines.join('\n'),
      errors: this.#errors,
      result: last.startsWith('{') ? JSON.parse(last) : undefined,
    };
  }
}
