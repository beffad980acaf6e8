import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createProject, runInline } from './run-inline.ts';
import { saidBy, workerProject } from './worker-project.ts';

const implement = 'echo new > new.txt; echo "<next>land</next>"';
const tasks = { one: '# Add a file\n' };
const project = (config = '') => workerProject({ agents: { implement }, tasks, config });

const landedOn = (lab: ReturnType<typeof project>, branch: string) =>
  lab.git('log', '--format=%s', branch).split('\n');

describe('a worker', () => {
  it.each([['feat/x'], ['größe/日本語'], ["it's-$HOME"]])(
    'lands on the branch %s and leaves main alone',
    async branch => {
      const lab = project();
      lab.git('branch', branch);
      const main = lab.git('rev-parse', 'main');
      const { code, stderr } = await lab.worker(['--until-idle', '--branch', branch]).ended;
      expect(code, stderr).toBe(0);
      expect(landedOn(lab, branch)).toEqual(['Add a file', 'Initial commit']);
      expect(lab.git('rev-parse', 'main')).toBe(main);
      expect(lab.git('status', '--porcelain')).toBe('');
    },
  );

  it('lands on main even if HEAD is detached', async () => {
    const lab = project();
    lab.git('checkout', '--quiet', '--detach');
    const { code, stderr } = await lab.worker(['--until-idle']).ended;
    expect(code, stderr).toBe(0);
    expect(landedOn(lab, 'main')).toEqual(['Add a file', 'Initial commit']);
    expect(landedOn(lab, 'HEAD')).toEqual(['Initial commit']);
  });

  it('lands on the checked-out branch if there is no main', async () => {
    const lab = project();
    lab.git('branch', '--move', 'main', 'trunk');
    const { code, stderr } = await lab.worker(['--until-idle']).ended;
    expect(code, stderr).toBe(0);
    expect(landedOn(lab, 'trunk')).toEqual(['Add a file', 'Initial commit']);
    expect(lab.read('new.txt')).toBe('new\n');
  });

  it('keeps uncommitted changes that do not collide with the work', async () => {
    const lab = project();
    lab.write({ 'a.txt': 'mine\n', 'untracked.txt': 'mine too\n' });
    const { code, stderr } = await lab.worker(['--until-idle']).ended;
    expect(code, stderr).toBe(0);
    expect(landedOn(lab, 'main')).toEqual(['Add a file', 'Initial commit']);
    expect([lab.read('a.txt'), lab.read('untracked.txt'), lab.read('new.txt')]).toEqual([
      'mine\n',
      'mine too\n',
      'new\n',
    ]);
  });
});

describe('reprise worker', () => {
  it.each([
    [
      'a branch with spaces',
      ['--branch', 'my branch'],
      'error[USAGE]: "my branch" is not a valid branch name\n',
    ],
    [
      'an unknown branch',
      ['--branch', 'feat/y'],
      'error[USAGE]: branch feat/y does not exist\n  hint: create it: git branch feat/y; or use main: --branch main\n',
    ],
    [
      'an unknown agent',
      ['--agent', 'implemnt'],
      'error[USAGE]: unknown agent implemnt\n  hint: did you mean implement?\n',
    ],
    [
      '--once with --until-idle',
      ['--once', '--until-idle'],
      'error[USAGE]: --once and --until-idle cannot be combined\n',
    ],
    [
      'one name for several workers',
      ['--name', 'ana', '--workers', '2'],
      'error[USAGE]: --name names a single worker and cannot be combined with --workers\n  hint: omit --name: the workers are called worker-1, worker-2 and so on\n',
    ],
  ])('refuses %s', async (_, args, message) => {
    const { code, stderr } = await project().worker(args).ended;
    expect([code, stderr]).toEqual([2, message]);
  });

  it('refuses `dispatch: agent` without an agent called dispatch', async () => {
    const lab = project('workers: { dispatch: agent }');
    const { code, stderr } = await lab.worker().ended;
    expect(`${saidBy(lab, stderr)}exit ${code}`).toMatchInlineSnapshot(`
      "error[USAGE]: unknown agent dispatch
        hint: known agents: claude, codex, implement; define others in .reprise/agents, or create some with: reprise init
      exit 2"
    `);
  });

  it('refuses a detached HEAD without a main branch', async () => {
    const lab = project();
    lab.git('checkout', '--quiet', '--detach');
    lab.git('branch', '-D', 'main');
    const { code, stderr } = await lab.worker().ended;
    expect(`${saidBy(lab, stderr)}exit ${code}`).toMatchInlineSnapshot(`
      "error[USAGE]: branch main does not exist, and no branch is checked out
        hint: name the branch to land on: reprise worker --branch <branch>
      exit 2"
    `);
  });

  it('refuses a repository without commits', async () => {
    const { code, stderr } = await runInline({ git: true, files: {}, args: ['worker'] });
    expect(`${stderr}exit ${code}`).toMatchInlineSnapshot(`
      "error[USAGE]: the repository has no commits yet
        hint: create the first one: git add --all && git commit -m "Initial commit"
      exit 2"
    `);
  });

  it('refuses a folder outside a repository', async () => {
    const { code, stderr, project: lab } = await runInline({ files: {}, args: ['worker'] });
    expect(`${lab.stable(stderr)}exit ${code}`).toMatchInlineSnapshot(`
      "error[NOT_A_REPOSITORY]: <root>: not a git repository (or any of the parent directories): .git
        hint: run it inside a git repository, or make one: git init
      exit 1"
    `);
  });

  it('says how to install git if it is missing', async () => {
    const lab = createProject({ git: true });
    mkdirSync(join(lab.root, 'bin'));
    symlinkSync(process.execPath, join(lab.root, 'bin', 'node'));
    const { code, stderr } = await lab.run(['worker'], { env: { PATH: join(lab.root, 'bin') } });
    expect(`${stderr}exit ${code}`).toMatchInlineSnapshot(`
      "error[GIT_NOT_FOUND]: git is not on the PATH
        hint: install git 2.38 or newer: https://git-scm.com/downloads
      exit 1"
    `);
  });
});

it('a worker parks work that would overwrite uncommitted changes, and keeps the changes', async () => {
  const lab = workerProject({
    agents: { implement: 'echo theirs > a.txt; echo "<next>land</next>"' },
    tasks,
  });
  lab.write({ 'a.txt': 'mine\n' });
  const { code, stderr } = await lab.worker(['--until-idle']).ended;
  expect(`${saidBy(lab, stderr)}exit ${code}`).toMatchInlineSnapshot(`
    "worker-1  started on branch main
    worker-1  picked up one, starting agent implement (P2, the only ready task; the default agent)
    worker-1  agent implement (command) started
    worker-1  | <next>land</next>
    worker-1  implement -> land
    worker-1  saved 2 files, +5 -1
    worker-1  landing on main
    worker-1  not landed on main: main is checked out in <root>, and landing would overwrite uncommitted changes there: a.txt
    worker-1  parked on reprise/parked/one: main is checked out in <root>, and landing would overwrite uncommitted changes there: a.txt
    worker-1  failed: one could not be landed on main: main is checked out in <root>, and landing would overwrite uncommitted changes there: a.txt
    worker-1  nothing to do: no task is ready: 1 parked
    worker-1  done: no task is ready and no worker is busy
    exit 6"
  `);
  expect(lab.read('a.txt')).toBe('mine\n');
  expect(landedOn(lab, 'main')).toEqual(['Initial commit']);
  expect(lab.git('show', 'reprise/parked/one:a.txt')).toBe('theirs');
});
