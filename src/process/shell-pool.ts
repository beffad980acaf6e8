import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { closeSync, ftruncateSync, openSync, readSync, unlinkSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { endOnAbort, identityOf, type ProgramEnd, type ProgramOptions, type RunProgram } from './program.ts';

/**
 * Starts programs through small shells, for a process that starts very many of them. A spawn from Node takes twice as
 * long as git itself: the fork maps all memory of Node copy-on-write, and every page written afterwards costs again.
 *
 * The output of a program goes to unlinked files. A background process that it leaves running must not print.
 */
export class ShellPool {
  readonly #folder: string;
  readonly #shells: PooledShell[] = [];
  readonly #idle: PooledShell[] = [];

  /** `folder` must exist until the pool is closed. Other files in it are not touched. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Runs a program. Each concurrent call uses its own shell; their number is not limited. */
  readonly run: RunProgram = async (argv, options) => {
    const shell = this.#idle.pop() ?? this.#open();
    try {
      return await shell.run(argv, options);
    } finally {
      if (shell.isAlive) this.#idle.push(shell);
    }
  };

  /** Ends the shells. Must not be called while a program runs. */
  close(): void {
    for (const shell of this.#shells) shell.close();
    this.#shells.length = 0;
    this.#idle.length = 0;
  }

  #open(): PooledShell {
    const shell = new PooledShell(join(this.#folder, `starter-${this.#shells.length}`));
    this.#shells.push(shell);
    return shell;
  }
}

/** Exit codes of a shell that could not start a program, with the matching error codes of the system. */
const startFailures: ReadonlyMap<number, string> = new Map([
  [126, 'EACCES'],
  [127, 'ENOENT'],
]);

interface ShellListener {
  receive(line: string): void;
  fail(error: Error): void;
}

/** Runs one program at a time. */
class PooledShell {
  readonly #inputFile: string;
  readonly #stdout: number;
  readonly #stderr: number;
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  #partialLine = '';
  readonly #lines: string[] = [];
  #listener: ShellListener | undefined;
  #failure: Error | undefined;

  constructor(path: string) {
    this.#inputFile = `${path}-input`;
    this.#stdout = openUnlinked(`${path}-stdout`);
    this.#stderr = openUnlinked(`${path}-stderr`);
    this.#process = spawn('/bin/sh', [], {
      cwd: '/',
      env: {},
      detached: true,
      stdio: ['pipe', 'pipe', 'ignore', this.#stdout, this.#stderr],
    }) as ChildProcessByStdio<Writable, Readable, null>;
    this.#process.once('error', error => this.#fail(error));
    this.#process.once('exit', () => this.#fail(new Error('the shell that starts programs has ended')));
    this.#process.stdin.on('error', error => this.#fail(error));
    this.#process.stdout.setEncoding('utf8').on('data', (text: string) => this.#listen(text));
    this.#process.unref();
    this.#keepAwake(false);
  }

  get isAlive(): boolean {
    return this.#failure === undefined;
  }

  async run(argv: readonly string[], { cwd, env, input, signal }: ProgramOptions): Promise<ProgramEnd> {
    if (input) writeFileSync(this.#inputFile, input);
    const from = input ? quoted(this.#inputFile) : '/dev/null';
    const program = `cd -P ${quoted(cwd)} || exit 127; ${environmentOf(env)}${argv.map(quoted).join(' ')}`;
    const printPid = signal ? 'echo $!; ' : '';
    this.#keepAwake(true);
    try {
      this.#process.stdin.write(`(${program} <${from} >&3 2>&4 3>&- 4>&-) & ${printPid}wait $!; echo $?\n`);
      const isOver = signal && endOnAbort(identityOf(Number(await this.#line())), signal);
      const code = Number(await this.#line());
      await isOver?.();
      const [stdout, stderr] = [takeAll(this.#stdout), takeAll(this.#stderr)];
      const failure = startFailures.get(code);
      if (failure !== undefined) throw Object.assign(new Error(stderr.toString()), { code: failure });
      return { code: Math.min(code, 128), stdout, stderr };
    } finally {
      this.#keepAwake(false);
    }
  }

  close(): void {
    this.#process.stdin.end();
    closeSync(this.#stdout);
    closeSync(this.#stderr);
  }

  #listen(text: string): void {
    const lines = `${this.#partialLine}${text}`.split('\n');
    this.#partialLine = lines.pop() ?? '';
    this.#lines.push(...lines);
    const line = this.#listener && this.#lines.shift();
    if (line !== undefined) this.#listener?.receive(line);
  }

  /** Next line that the shell prints. */
  #line(): Promise<string> {
    const line = this.#lines.shift();
    if (line !== undefined) return Promise.resolve(line);
    if (this.#failure) return Promise.reject(this.#failure);
    return new Promise<string>((receive, fail) => {
      this.#listener = { receive, fail };
    }).finally(() => {
      this.#listener = undefined;
    });
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#listener?.fail(error);
  }

  /** Keeps the event loop of this process alive while the shell runs a program. */
  #keepAwake(isRunning: boolean): void {
    for (const stream of [this.#process.stdin, this.#process.stdout] as unknown as readonly Socket[])
      if (isRunning) stream.ref();
      else stream.unref();
  }
}

/** Opens an unlinked file in append mode, so writes go to its end even after it was truncated. */
function openUnlinked(path: string): number {
  const file = openSync(path, 'ax+', 0o600);
  unlinkSync(path);
  return file;
}

const chunk = Buffer.alloc(1 << 16);

/** Reads the whole file and truncates it. */
function takeAll(file: number): Buffer {
  const chunks: Buffer[] = [];
  let length = 0;
  for (;;) {
    const read = readSync(file, chunk, 0, chunk.length, length);
    if (read === 0) break;
    chunks.push(Buffer.from(chunk.subarray(0, read)));
    length += read;
    if (read < chunk.length) break;
  }
  if (length > 0) ftruncateSync(file, 0);
  return Buffer.concat(chunks);
}

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/** Whether a shell can export the variable: it must have a shell name and must not be read-only. */
const canExport = ({ name }: { readonly name: string }): boolean =>
  /^[A-Za-z_]\w*$/.test(name) && !/^(BASHOPTS|BASH_VERSINFO|EUID|PPID|SHELLOPTS|UID)$/.test(name);

const textOf = new WeakMap<ProgramOptions['env'], string>();

/** Shell text in front of a program that sets its environment. */
function environmentOf(env: ProgramOptions['env']): string {
  const known = textOf.get(env);
  if (known !== undefined) return known;
  const given = Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : { name, value }));
  const [own, others] = [given.filter(canExport), given.filter(each => !canExport(each))];
  const words = (of: typeof given) => of.map(({ name, value }) => quoted(`${name}=${value}`)).join(' ');
  const exporting = own.length === 0 ? '' : `export ${words(own)}; `;
  const text = `${exporting}exec ${others.length === 0 ? '' : `/usr/bin/env ${words(others)} `}`;
  textOf.set(env, text);
  return text;
}
