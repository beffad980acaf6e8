import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { onTestFinished, vi } from 'vitest';

const cli = resolve('dist/cli/main.js');

/** For modules in throw-away projects: what they import instead of the installed package. */
export const defineModule = `file://${resolve('dist/index.js')}`;
export const zodModule = `file://${resolve('node_modules/zod/index.js')}`;

export type Files = Readonly<Record<string, string>>;
type Environment = Readonly<Record<string, string | undefined>>;

export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  readonly env?: Environment | undefined;
  readonly stdin?: string | undefined;
  /** Relative to the root of the project. */
  readonly cwd?: string | undefined;
}

/** A command that is under way. */
export interface RunningCli {
  readonly pid: number;
  /** What it has printed so far. */
  readonly stdout: string;
  readonly stderr: string;
  readonly ended: Promise<CliResult>;
  kill(signal: NodeJS.Signals): void;
}

/** A project on disk, removed when the test has ended. */
export interface TestProject {
  readonly root: string;
  run(args: readonly string[], options?: CliOptions): Promise<CliResult>;
  start(args: readonly string[], options?: CliOptions): RunningCli;
  write(files: Files): void;
  /** The text of a file; empty if there is none. */
  read(file: string): string;
  has(file: string): boolean;
  /** What was printed, without what differs from one run to the next. */
  stable(text: string): string;
}

export interface ProjectOptions {
  readonly files?: Files | undefined;
  /** Whether the project is a git repository. */
  readonly git?: boolean | undefined;
}

export function createProject({ files = {}, git = false }: ProjectOptions = {}): TestProject {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'reprise-e2e-')));
  onTestFinished(() => rmSync(root, { recursive: true, force: true, maxRetries: 5 }));
  const write = (more: Files) => {
    for (const [name, text] of Object.entries(more)) {
      mkdirSync(dirname(join(root, name)), { recursive: true });
      writeFileSync(join(root, name), text);
    }
  };
  write(files);
  if (git) execFileSync('git', ['init', '--quiet', root]);
  // The nearest root must be this one, wherever temporary folders are.
  else if (!Object.keys(files).some(name => name.startsWith('.reprise/'))) mkdirSync(join(root, '.reprise'));
  const start = (args: readonly string[], options: CliOptions = {}) => startCli(root, args, options);
  return {
    root,
    start,
    run: (args, options) => start(args, options).ended,
    write,
    has: file => existsSync(join(root, file)),
    read: file => (existsSync(join(root, file)) ? readFileSync(join(root, file), 'utf8') : ''),
    stable: text => stableText(text, root),
  };
}

/** Writes a throw-away project and runs one command in it, as a user would. */
export async function runInline({
  files,
  git,
  args,
  ...options
}: ProjectOptions & CliOptions & { readonly args: readonly string[] }): Promise<
  CliResult & { readonly project: TestProject }
> {
  const project = createProject({ files, git });
  return { ...(await project.run(args, options)), project };
}

function startCli(
  root: string,
  args: readonly string[],
  { env = {}, stdin, cwd = '.' }: CliOptions,
): RunningCli {
  const child = spawn(process.execPath, [cli, ...args], {
    cwd: join(root, cwd),
    env: { ...baseEnvironment(root), ...env },
    stdio: 'pipe',
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', text => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', text => {
    stderr += text;
  });
  child.stdin.on('error', () => {}).end(stdin ?? '');
  const ended = once(child, 'close').then(([code]): CliResult => ({ code, stdout, stderr }));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return {
    pid: child.pid ?? 0,
    get stdout() {
      return stdout;
    },
    get stderr() {
      return stderr;
    },
    ended,
    kill: signal => {
      child.kill(signal);
    },
  };
}

const baseEnvironment = (root: string): Environment => ({
  PATH: process.env['PATH'],
  HOME: root,
  LANG: 'C.UTF-8',
  USER: 'ana',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_SYSTEM: '/dev/null',
});

const stableText = (text: string, root: string): string =>
  text
    .replaceAll(root, '<root>')
    .replace(/\b[23456789bcdfghjkmnpqrstvwxz]{10}\b/g, '<run>')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<at>')
    .replace(/\b\d\d:\d\d:\d\d(\.\d+)?\b/g, '<time>')
    .replace(/\bprocess \d+ on \S+( pid:\[\d+\])?/g, 'process <pid> on <host>')
    .replace(/\b\d+(\.\d+)?(ms|s)\b/g, '<took>')
    .replace(/\bjust now\b|<took> ago\b/g, '<ago>')
    // Columns are as wide as what differs.
    .replace(/(\S) {2,}/g, '$1  ');

/** Resolves when it holds; how long that takes says nothing. */
export const until = (holds: () => boolean): Promise<void> =>
  vi.waitFor(
    () => {
      if (!holds()) throw new Error(`never came: ${holds}`);
    },
    { timeout: 50_000, interval: 10 },
  );

/** NDJSON as it is: a line that is not JSON fails. */
export const parseLines = <T = Record<string, unknown>>(text: string): T[] =>
  text
    .split('\n')
    .flatMap((line, index, all) => (line === '' && index === all.length - 1 ? [] : [JSON.parse(line) as T]));
