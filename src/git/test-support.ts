import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { thisProcess } from '../process/table.ts';
import type { Owner } from '../store/port.ts';
import type { Resolution } from './conflict/progress.ts';
import { abortResolution, beginResolution, continueResolution } from './conflict/resolve.ts';
import { type LandRequest, land } from './landing/land-now.ts';
import type { Landing } from './landing/landing.ts';
import { openRepository, type Repository } from './repository.ts';
import { createWorkspace } from './workspace/create.ts';
import { privateGitDir } from './workspace/entries.ts';

/** Nothing of whoever runs the tests. */
export const plainEnvironment = {
  PATH: process.env['PATH'],
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: 'Ann',
  GIT_AUTHOR_EMAIL: 'ann@example.com',
  GIT_AUTHOR_DATE: '@1767225600 +0000',
  GIT_COMMITTER_NAME: 'Ann',
  GIT_COMMITTER_EMAIL: 'ann@example.com',
  GIT_COMMITTER_DATE: '@1767225600 +0000',
};

const ownerNamed = (incarnation: string): Owner => ({ incarnation, ...thisProcess() });

/** The folder is gone when the test is over. */
export function temporaryFolder(name = 'reprise git'): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), `${name}-`)));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A repository with one commit on `main`, and a folder beside it for workspaces. */
export class Lab {
  readonly root: string;
  readonly folder: string;
  readonly owner = ownerNamed('tester');

  constructor(folder = temporaryFolder()) {
    this.folder = folder;
    this.root = join(folder, 'the repository');
    mkdirSync(this.root);
    this.git('init', '--quiet', '--initial-branch=main');
    this.write('a.txt', 'one\n');
    this.git('add', '--all');
    this.git('commit', '--quiet', '--message=Begin');
  }

  open(): Promise<Repository> {
    return openRepository({ cwd: this.root, inheritEnv: plainEnvironment });
  }

  /** Runs at the root, or in another folder: `{ at }` first. Gives what it prints. */
  git(...args: readonly string[]): string {
    return this.gitAt(this.root, ...args);
  }

  gitAt(cwd: string, ...args: readonly string[]): string {
    return execFileSync('git', args, {
      cwd,
      env: plainEnvironment,
      encoding: 'utf8',
      stdio: 'pipe',
    }).trimEnd();
  }

  write(name: string, text: string, folder = this.root): void {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }

  /** Commits one file in a folder and gives the commit. */
  commit(folder: string, name: string, text: string): string {
    this.write(name, text, folder);
    this.gitAt(folder, 'add', '--all');
    this.gitAt(folder, 'commit', '--quiet', `--message=Write ${name}`);
    return this.gitAt(folder, 'rev-parse', 'HEAD');
  }

  workspace(name: string): string {
    return join(this.folder, 'workspaces', name);
  }

  /** All that a user could notice of the checkout. */
  fingerprint(): Readonly<Record<string, string>> {
    const file = (name: string) => readFileSync(join(this.root, '.git', name), 'latin1');
    return {
      head: file('HEAD'),
      index: file('index'),
      config: file('config'),
      status: this.git('status', '--porcelain', '--untracked-files=all', '--ignored'),
      tree: this.git('rev-parse', 'HEAD'),
      reflog: file('logs/HEAD'),
    };
  }
}

/** A branch `work` with its own worktree, which began where main is. */
export function labWithWork(): { readonly lab: Lab; readonly work: string } {
  const lab = new Lab();
  const work = lab.workspace('work');
  lab.git('worktree', 'add', '--quiet', '-b', 'work', work);
  return { lab, work };
}

/** Lands `work` on main. */
export const landIn = async (lab: Lab, changes: Partial<LandRequest> = {}): Promise<Landing> =>
  land({
    repository: await lab.open(),
    owner: lab.owner,
    source: { branch: 'work' },
    onto: 'main',
    ...changes,
  });

export const subjectsOnMain = (lab: Lab): readonly string[] =>
  lab.git('log', '--reverse', '--format=%s', 'main').split('\n');

/** A workspace whose branch is to conflict with main, and what can be done about it. */
export async function conflictLab(files: Readonly<Record<string, string>> = {}) {
  const lab = new Lab();
  for (const [name, text] of Object.entries(files)) lab.write(name, text);
  if (Object.keys(files).length > 0) {
    lab.git('add', '--all');
    lab.git('commit', '--quiet', '--message=Files');
  }
  const repository = await lab.open();
  const { owner } = lab;
  const branch = 'reprise/w/ünïcode';
  const made = await createWorkspace({ repository, owner, path: lab.workspace('a b'), base: 'main', branch });
  const { path } = made.workspace;
  const request = { repository, owner, path };
  const committer = { name: 'Reprise', email: 'reprise@localhost' };
  const at = '2026-01-01T00:00:00.000Z';
  const tryToBegin = () =>
    beginResolution({ ...request, branch, onto: lab.git('rev-parse', 'main'), ontoName: 'main' });
  return {
    lab,
    repository,
    path,
    branch,
    gitDir: privateGitDir(path) ?? '',
    tryToBegin,
    begin: async () => {
      const begun = await tryToBegin();
      if (begun.kind !== 'conflict') throw new Error('there is no conflict');
      return begun.resolution;
    },
    goOn: (resolution: Resolution) => continueResolution({ ...request, resolution, committer, at }),
    giveUp: (resolution: Resolution) => abortResolution({ ...request, resolution }),
    /** HEAD, the commit, and what is not committed. */
    state: () => [
      lab.gitAt(path, 'symbolic-ref', 'HEAD'),
      lab.gitAt(path, 'rev-parse', 'HEAD'),
      lab.gitAt(path, 'status', '--porcelain'),
    ],
  };
}

const source = fileURLToPath(new URL('../../', import.meta.url));
const program = fileURLToPath(new URL('./fixtures/worker.mjs', import.meta.url));

/** Child processes cannot run TypeScript. Call it once in a file; gives where the JavaScript is. */
export function compiledRoom(): () => string {
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'reprise-compiled-'));
    const compilerOptions = {
      noEmit: false,
      noCheck: true,
      declaration: false,
      types: [],
      rootDir: join(source, 'src'),
      outDir: folder,
    };
    const names = ['landing/land-now', 'workspace/remove', 'workspace/create'];
    const files = names.map(name => join(source, 'src/git', `${name}.ts`));
    const config = { extends: join(source, 'tsconfig.json'), compilerOptions, include: [], files };
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
    symlinkSync(join(source, 'node_modules'), join(folder, 'node_modules'), 'dir');
    const tsc = join(source, 'node_modules/typescript/bin/tsc');
    await promisify(execFile)(process.execPath, [tsc, '-p', folder]);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return () => folder;
}

export type Line = Readonly<Record<string, unknown>>;

/** One process of several that share a repository. */
export class Worker {
  readonly lines: Line[] = [];
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown[]>;
  readonly #waiting = new Set<() => void>();
  #errors = '';

  constructor(compiled: string, options: { task: string; root: string; name: string; rounds: number }) {
    const { task, root, name, rounds } = options;
    const args = [program, compiled, task, root, name, String(rounds)];
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

  /** Resolves when it has printed that many lines, the first of which says that it is ready. */
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

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  said<T>(key: string): T[] {
    return this.lines.filter(line => key in line).map(line => line[key] as T);
  }
}

/** Starts all of them at the same moment, and waits until they have ended without an error. */
export async function runTogether(workers: readonly Worker[]): Promise<void> {
  await Promise.all(workers.map(each => each.printed(1)));
  for (const each of workers) each.start();
  await Promise.all(workers.map(each => each.done()));
}
