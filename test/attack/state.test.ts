import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { agentProject } from '../e2e/agent-project.ts';
import { parseLines, until } from '../e2e/run-inline.ts';
import { nothingLeft, workerProject } from '../e2e/worker-project.ts';
import { itAsRoot, sh } from '../support/root.ts';

/** Writes a mark, waits for the file `$MARKS.go`, then changes a file. */
const patient = `
echo "$REPRISE_TASK" >> "$MARKS"
until [ -e "$MARKS.go" ]; do sleep 0.05; done
echo x > "$REPRISE_TASK.txt"
echo "<next>land</next>"`;
const quick = 'echo "$REPRISE_TASK" >> "$MARKS"; echo x > "$REPRISE_TASK.txt"; echo "<next>land</next>"';
const workflow = '{ name: w, steps: [{ id: s, run: echo hi }] }\n';

const openTo = (path: string): string =>
  readdirSync(path)
    .map(name => join(path, name))
    .concat(path)
    .filter(each => (statSync(each).mode & 0o077) !== 0)
    .join(' ');

describe('state in the git folder', () => {
  it('survives git clean -xfd under a running worker, and the task lands once', async () => {
    const project = workerProject({ agents: { implement: patient }, tasks: { one: '# One\n' } });
    const worker = project.worker(['--until-idle']);
    await until(() => project.marks().length > 0);
    project.git('clean', '-xfdq');
    project.tell('go', '');
    expect((await worker.ended).code, worker.stderr).toBe(0);
    expect(await project.worker(['--until-idle']).ended).toMatchObject({ code: 0 });
    expect(project.marks()).toEqual(['one']);
    expect(project.landed()).toEqual(['one']);
    expect(parseLines((await project.run(['list', '--json'])).stdout)).toHaveLength(1);
    expect(await project.leftovers()).toEqual(nothingLeft);
  });

  it('lets two worktrees share the claims, so that each task is done and landed once', async () => {
    const tasks = Object.fromEntries(['a', 'b', 'c', 'd', 'e', 'f'].map(id => [id, `# ${id}\n`]));
    const project = workerProject({ agents: { implement: quick }, tasks });
    const at = { cwd: `../${basename(project.root)}-linked` };
    const linked = join(project.root, at.cwd);
    project.git('worktree', 'add', '--quiet', '-b', 'side', linked);
    try {
      const args = ['--until-idle', '--branch', 'main'];
      const workers = [project.worker(args), project.worker(args, at)];
      for (const { ended } of workers) expect(await ended).toMatchObject({ code: 0 });
      expect(project.marks().toSorted()).toEqual(Object.keys(tasks));
      expect(project.landed().toSorted()).toEqual(Object.keys(tasks));
      const fromLinked = await project.run(['list', '--json'], at);
      expect(parseLines(fromLinked.stdout)).toEqual(
        parseLines((await project.run(['list', '--json'])).stdout),
      );
      expect(execFileSync('git', ['status', '--porcelain'], { cwd: linked, encoding: 'utf8' })).toBe('');
      expect(project.git('status', '--porcelain')).toBe('');
    } finally {
      rmSync(linked, { recursive: true });
    }
  });

  it.each([
    ['deleted', (file: string) => rmSync(file)],
    ['truncated', (file: string) => truncateSync(file)],
    [
      'replaced',
      (file: string) => {
        copyFileSync(file, `${file}.copy`);
        renameSync(`${file}.copy`, file);
      },
    ],
  ])('stops a worker whose store was %s, and nothing lands', async (what, change) => {
    const project = workerProject({ agents: { implement: patient }, tasks: { one: '# One\n' } });
    const worker = project.worker(['--until-idle']);
    await until(() => project.marks().length > 0);
    change(join(project.root, '.git/reprise/reprise.db'));
    project.tell('go', '');
    const { code, stderr } = await worker.ended;
    expect(code).not.toBe(0);
    expect(stderr).toContain('STORE_FAILED');
    expect(stderr).toContain(`was ${what} while this process was using it`);
    expect(project.landed()).toEqual([]);
  });

  it('is accessible to its owner only, whichever command is the first and whatever the umask is', async () => {
    const project = agentProject({
      agents: { a: quick },
      files: { 'issues/a.md': '# A\n', 'w.yaml': workflow },
    });
    const umask = process.umask(0);
    try {
      await project.run(['tasks', 'claim', 'a']);
      const state = join(project.root, '.git/reprise');
      expect(openTo(state)).toBe('');
      expect(await project.run(['run', 'w.yaml'])).toMatchObject({ code: 0 });
      expect((statSync(state).mode & 0o777).toString(8)).toBe('700');
      chmodSync(join(state, 'reprise.db'), 0o644);
      chmodSync(state, 0o755);
      await project.run(['list']);
      expect(openTo(state)).toBe('');
      project.git('config', 'core.sharedRepository', 'group');
      chmodSync(state, 0o770);
      await project.run(['list']);
      expect((statSync(state).mode & 0o777).toString(8)).toBe('770');
    } finally {
      process.umask(umask);
    }
  });

  it('is STORE_FAILED with a way out if git refuses the repository', async () => {
    const project = agentProject({ agents: { a: quick }, files: { 'w.yaml': workflow } });
    const env = { GIT_TEST_ASSUME_DIFFERENT_OWNER: '1' };
    for (const args of [['list'], ['run', 'w.yaml'], ['show']]) {
      const { code, stderr } = await project.run(args, { env });
      expect(code).toBe(1);
      expect(stderr).toContain('STORE_FAILED');
      expect(stderr).toContain('REPRISE_STATE_DIR=<folder>');
    }
    expect(project.has('.reprise/state')).toBe(false);
    const elsewhere = { env: { ...env, REPRISE_STATE_DIR: join(project.root, 'elsewhere') } };
    expect(await project.run(['run', 'w.yaml'], elsewhere)).toMatchObject({ code: 0 });
    expect(project.has('elsewhere/reprise.db')).toBe(true);
  });

  it('belongs to the common directory of a bare repository with worktrees', async () => {
    const project = workerProject({ agents: { implement: quick }, tasks: { one: '# One\n' } });
    const folder = `${basename(project.root)}-bare`;
    const base = join(project.root, '..', folder);
    project.git('clone', '--quiet', '--bare', '.', join(base, 'bare.git'));
    onTestFinished(() => rmSync(base, { recursive: true }));
    const bare = (...args: string[]) =>
      execFileSync('git', args, { cwd: join(base, 'bare.git'), encoding: 'utf8' });
    bare('config', 'user.name', 'Ana');
    bare('config', 'user.email', 'ana@localhost');
    bare('worktree', 'add', '--quiet', '-b', 'side', '../linked', 'main');
    const at = { cwd: `../${folder}/linked` };
    const worker = project.worker(['--until-idle', '--branch', 'main'], at);
    expect((await worker.ended).code, worker.stderr).toBe(0);
    expect(bare('log', '--format=%(trailers:key=Task,valueonly)', 'main').trim()).toBe('one');
    expect(existsSync(join(base, 'bare.git/reprise/reprise.db'))).toBe(true);
    expect(existsSync(join(base, 'linked/.reprise'))).toBe(false);
    for (const cwd of [at.cwd, `../${folder}/bare.git`])
      expect(parseLines((await project.run(['list', '--json'], { cwd })).stdout)).toHaveLength(1);
  });
});

itAsRoot(
  'state that may not be read is STORE_FAILED with its path and mode, never "no runs yet"',
  async () => {
    const project = agentProject({ agents: { a: quick }, files: { 'w.yaml': workflow } });
    await project.run(['run', 'w.yaml']);
    const state = join(project.root, '.git/reprise');
    sh('chown', '-R', '65534:65534', project.root);
    sh('chown', '0:0', state);
    const nobody = {
      cwd: project.root,
      uid: 65534,
      gid: 65534,
      env: { PATH: process.env['PATH'], HOME: '/nonexistent' },
    };
    for (const command of ['list', 'status', 'show', 'gc']) {
      const { status, stderr } = spawnSync(process.execPath, [resolve('dist/cli/main.js'), command], nobody);
      expect([command, status]).toEqual([command, 1]);
      expect(String(stderr)).toContain('error[STORE_FAILED]');
      expect(String(stderr)).toContain(`${state} has mode 0700 and belongs to user 0`);
    }
  },
);

describe('two projects in one repository', () => {
  const settings = (folder: string) => `tasks: { folder: ${folder} }\nworkers: { agent: w }
agents: { w: { kind: scripted, script: [{ run: 'echo x > $REPRISE_RUN.txt' }, { say: <next>land</next> }] } }\n`;
  const project = () =>
    agentProject({
      files: {
        'reprise.yaml': settings('issues'),
        'issues/a.md': '# A of the top\n',
        'packages/p/reprise.yaml': settings('packages/p/issues'),
        'packages/p/issues/a.md': '# A of the package\n',
        'packages/p/w.yaml': workflow,
      },
    });
  const inner = { cwd: 'packages/p' };

  it('have their own runs and claims, and --all shows both', async () => {
    const at = project();
    expect(await at.run(['tasks', 'claim', 'a', '--by', 'ana'])).toMatchObject({ code: 0 });
    expect(await at.run(['worker', '--until-idle'], inner)).toMatchObject({ code: 0 });
    expect(at.git('log', '-1', '--format=%s')).toContain('A of the package');
    expect(await at.run(['run', 'w.yaml'], inner)).toMatchObject({ code: 0 });

    const list = async (...args: string[]) =>
      parseLines<{ workflow: string; project?: string }>(
        (await at.run(['list', '--json', ...args])).stdout,
      ).map(({ workflow: name, project: of }) => [name, of]);
    expect(await list()).toEqual([]);
    expect(await list('--all')).toEqual([
      ['w', 'packages/p'],
      ['worker', 'packages/p'],
    ]);
    expect((await at.run(['list', '--all'])).stdout).toContain('packages/p');

    const standings = async (...args: string[]) =>
      parseLines<{ standing: string; project?: string }>(
        (await at.run(['tasks', '--json', ...args])).stdout,
      ).map(({ standing, project: of }) => [standing, of]);
    expect(await standings()).toEqual([['held', undefined]]);
    expect(await standings('--all')).toEqual([
      ['held', '.'],
      ['landed', 'packages/p'],
    ]);
    expect((await at.run(['tasks', '--all'])).stdout).toContain('project packages/p\n');

    const status = await at.run(['status', '--all']);
    expect(status.code, status.stderr).toBe(0);
    expect(status.stdout).toMatch(/^project \.\n[\s\S]*\nproject packages\/p\n/);
    const objects = parseLines<{ project: string }>((await at.run(['status', '--all', '--json'])).stdout);
    expect(objects.map(({ project: of }) => of)).toEqual(['.', 'packages/p']);
    expect(await at.run(['status', '--all', '--watch'])).toMatchObject({ code: 2 });
    expect(await at.run(['tasks', 'claim', 'a', '--all'])).toMatchObject({ code: 2 });
  });

  it('are both known to gc, which keeps what a run of the other one still needs', async () => {
    const at = project();
    at.write({
      'packages/p/gate.yaml':
        '{ name: g, steps: [{ id: a, agent: w, prompt: x, workspace: worktree }, { id: ok, needs: a, approve: Fine? }] }\n',
    });
    at.git('add', '.');
    at.git('commit', '--quiet', '--message', 'Add a gate');
    expect(await at.run(['run', 'gate.yaml'], inner)).toMatchObject({ code: 3 });
    const { stdout } = await at.run(['gc']);
    expect(stdout).toMatch(/kept .*: run \w+ has not ended/);
    const [run] = parseLines<{ id: string }>((await at.run(['list', '--json'], inner)).stdout);
    expect(await at.run(['approve', run?.id ?? ''], inner)).toMatchObject({ code: 0 });
    const { code } = await at.run(['resume'], inner);
    expect(code).toBe(0);
    expect((await at.run(['gc'])).stdout).toContain('removed packages/p/.reprise/workspaces/g/');
  });
});

it('gc removes imported state after 30 days', async () => {
  const project = agentProject({ agents: { a: quick }, files: { 'w.yaml': workflow } });
  const folders = ['.reprise/state.imported', 'packages/p/.reprise/state.imported-2'];
  for (const [index, folder] of folders.entries()) {
    mkdirSync(join(project.root, folder), { recursive: true });
    const note = join(project.root, folder, '.gitignore');
    writeFileSync(note, '*\n');
    const age = (index === 0 ? 29 : 31) * 24 * 60 * 60;
    utimesSync(note, Date.now() / 1000 - age, Date.now() / 1000 - age);
  }
  expect((await project.run(['gc', '--dry-run'])).stdout).toContain(`would remove ${folders[1]}`);
  expect(project.has(folders[1] ?? '')).toBe(true);
  expect((await project.run(['gc'])).stdout).toContain(`removed ${folders[1]}`);
  expect(folders.map(project.has)).toEqual([true, false]);
});
