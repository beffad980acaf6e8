import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { thisProcess } from '../process/table.ts';
import type { Owner } from '../store/port.ts';
import type { Resolution } from './conflict/progress.ts';
import { abortResolution, beginResolution, continueResolution } from './conflict/resolve.ts';
import { type LandRequest, land } from './landing/advance.ts';
import type { Landing } from './landing/landing.ts';
import { openRepository, type Repository } from './repository.ts';
import { createWorkspace } from './workspace/create.ts';

/** Environment without any settings of the machine. */
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

/** Creates a folder that is removed after the test. */
export function temporaryFolder(name = 'reprise git'): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), `${name}-`)));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Repository with one commit on `main`, with a sibling folder for workspaces. */
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

  /** Runs git at the root of the repository and returns its output. */
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

  /** Commits one file in a folder and returns the commit. */
  commit(folder: string, name: string, text: string): string {
    this.write(name, text, folder);
    this.gitAt(folder, 'add', '--all');
    this.gitAt(folder, 'commit', '--quiet', `--message=Write ${name}`);
    return this.gitAt(folder, 'rev-parse', 'HEAD');
  }

  workspace(name: string): string {
    return join(this.folder, 'workspaces', name);
  }

  /** Returns everything that a user could notice in the checkout. */
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

/** Creates a branch `work` at main, with its own worktree. */
export function labWithWork(): { readonly lab: Lab; readonly work: string } {
  const lab = new Lab();
  const work = lab.workspace('work');
  lab.git('worktree', 'add', '--quiet', '-b', 'work', work);
  return { lab, work };
}

/** Lands `work` on `main`. */
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

/** Creates a workspace on main for a test about conflicts, with functions to resolve them. */
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
  const tryBegin = () =>
    beginResolution({ ...request, branch, onto: lab.git('rev-parse', 'main'), ontoName: 'main' });
  return {
    lab,
    repository,
    path,
    branch,
    gitDir: lab.gitAt(path, 'rev-parse', '--absolute-git-dir'),
    tryBegin,
    begin: async () => {
      const begun = await tryBegin();
      if (begun.kind !== 'conflict') throw new Error('there is no conflict');
      return begun.resolution;
    },
    proceed: (resolution: Resolution) => continueResolution({ ...request, resolution, committer, at }),
    abort: (resolution: Resolution) => abortResolution({ ...request, resolution }),
    /** Branch and commit of HEAD, and uncommitted changes. */
    state: () => [
      lab.gitAt(path, 'symbolic-ref', 'HEAD'),
      lab.gitAt(path, 'rev-parse', 'HEAD'),
      lab.gitAt(path, 'status', '--porcelain'),
    ],
  };
}
