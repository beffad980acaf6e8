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

/** URL that modules in throw-away projects import instead of the installed package. */
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
  /** Working directory, relative to the root of the project. Defaults to the root. */
  readonly cwd?: string | undefined;
}

/** Running command. */
export interface RunningCli {
  readonly pid: number;
  /** Standard output so far. */
  readonly stdout: string;
  readonly stderr: string;
  readonly ended: Promise<CliResult>;
  kill(signal: NodeJS.Signals): void;
}

/** Project on disk, removed when the test has ended. */
export interface TestProject {
  readonly root: string;
  run(args: readonly string[], options?: CliOptions): Promise<CliResult>;
  start(args: readonly string[], options?: CliOptions): RunningCli;
  write(files: Files): void;
  /** Text of a file; empty if it does not exist. */
  read(file: string): string;
  has(file: string): boolean;
  /** Replaces ids, times, durations and paths, which differ between runs. */
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
  // Reprise looks for a project root upwards, and must find this one first.
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

/** Starts the built CLI in a folder, and kills it when the test has ended. */
export function startCli(
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
    // The widths of columns depend on what was replaced.
    .replace(/(\S) {2,}/g, '$1  ');

/** Resolves when the condition holds. The timeout only turns a hang into a readable failure. */
export const until = (holds: () => boolean): Promise<void> =>
  vi.waitFor(
    () => {
      if (!holds()) throw new Error(`never became true: ${holds}`);
    },
    { timeout: 50_000, interval: 10 },
  );

/** Parses NDJSON; throws on a line that is not JSON. */
export const parseLines = <T = Record<string, unknown>>(text: string): T[] =>
  text
    .split('\n')
    .flatMap((line, index, all) => (line === '' && index === all.length - 1 ? [] : [JSON.parse(line) as T]));
