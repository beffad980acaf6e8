import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { agentBody, command, readonlyWorkspace, runBody, scripted, workLab } from './support.ts';

describe('setup and teardown', () => {
  test('run around the work: the project setup first, then the step setup', async () => {
    const lab = await workLab({ setup: ['echo project >> order'] });
    const unit = lab.unit(
      runBody('echo work >> order', {
        setup: [command('echo step >> order')],
        checks: [command('echo check >> order')],
        teardown: [command('echo down >> order')],
      }),
    );
    expect(await unit.work()).toMatchObject({ kind: 'completed' });
    expect(unit.read('order')).toBe('project\nstep\nwork\ncheck\ndown\n');
    expect(unit.git('show', 'HEAD:order')).toBe('project\nstep\nwork\ncheck');
  });

  test('fail the step before it starts if a setup command fails', async () => {
    const lab = await workLab({ setup: ['echo no network; exit 7'] });
    const unit = lab.unit(runBody('touch worked', { teardown: [command('touch torn')] }));
    expect(await unit.work()).toMatchObject({
      kind: 'failed',
      error: {
        code: 'SETUP_FAILED',
        message: 'the setup command `echo no network; exit 7` exited with code 7\nno network',
        hint: expect.stringContaining('fix.1.setup-1.log'),
      },
    });
    expect(unit.read('worked')).toBeUndefined();
    expect(unit.read('torn')).toBe('');
  });

  test('do not fail the step if a teardown command fails', async () => {
    const lab = await workLab();
    const unit = lab.unit(
      runBody('true', { teardown: [command('echo oh; exit 1'), command('touch second')] }),
    );
    expect(await unit.work()).toMatchObject({ kind: 'completed' });
    expect(lab.notices).toEqual([
      expect.stringMatching(/^fix: the teardown `echo oh; exit 1` failed: exited with code 1/),
    ]);
    expect(unit.read('second')).toBe('');
  });
});

test('the setup runs again when work continues after a teardown', async () => {
  const lab = await workLab({ setup: ['echo up >> order'] });
  const unit = lab.unit(
    runBody('echo here; test -f go || sleep 1000', { teardown: [command('echo down >> order')] }),
  );
  const here = lab.seen(each => each.kind === 'output' && each.line === 'here');
  expect(await unit.work({ cancelWhen: here })).toMatchObject({ kind: 'cancelled' });
  lab.git.write('go', '', unit.folder);
  expect(await unit.work()).toMatchObject({ kind: 'completed' });
  expect(unit.read('order')).toBe('up\ndown\nup\ndown\n');
});

describe('a read-only workspace', () => {
  test('stays unchanged and is not committed', async () => {
    const lab = await workLab();
    const unit = lab.unit(runBody('cat a.txt', { workspace: readonlyWorkspace }));
    expect(await unit.work()).toMatchObject({ kind: 'completed' });
    expect(unit.types).toEqual(['workspace.created']);
  });

  test.each([
    ['a tracked file', 'echo x >> a.txt', 'a.txt'],
    ['a new file', 'touch new.txt', 'new.txt'],
    ['a commit', 'echo x > c.txt; git add .; git -c user.name=x -c user.email=x commit -qm x', 'c.txt'],
  ])('refuses %s and is reset', async (_, script, file) => {
    const lab = await workLab();
    const unit = lab.unit(runBody(script, { workspace: readonlyWorkspace }));
    expect(await unit.work()).toMatchObject({
      kind: 'failed',
      error: { code: 'READONLY_CHANGED', message: expect.stringContaining(file), hint: expect.any(String) },
    });
    expect(unit.git('status', '--porcelain')).toBe('');
    expect(unit.git('rev-parse', 'HEAD')).toBe(lab.git.git('rev-parse', 'main'));
  });

  test('gives an agent read-only permissions, whatever its definition says', async () => {
    const ask = { tool: 'Write', input: { file_path: 'b.txt' } };
    const lab = await workLab({ agents: [scripted([{ ask }], { permissions: 'full' })] });
    const unit = lab.unit(agentBody({ work: { workspace: readonlyWorkspace } }));
    expect(await unit.work()).toMatchObject({
      error: { code: 'PERMISSION_DENIED', message: expect.stringContaining('read-only') },
    });
  });
});

describe('an artifact', () => {
  const artifacts = [{ name: 'report', path: 'out/report.md' }];

  test('is copied and named relative to the project', async () => {
    const lab = await workLab();
    const unit = lab.unit(runBody('mkdir out; echo hello > out/report.md', { artifacts }), { worker: 1 });
    const path = `.reprise/state/artifacts/${lab.runId}/fix.worker_1/report.md`;
    expect(await unit.work()).toEqual({
      kind: 'completed',
      output: {},
      artifacts: [{ name: 'report', path }],
    });
    expect(readFileSync(join(lab.root, path), 'utf8')).toBe('hello\n');
  });

  test.each([
    ['is missing', 'true', /is missing/],
    ['is a folder', 'mkdir -p out/report.md', /not a file/],
    ['is a pipe', 'mkdir out; mkfifo out/report.md', /not a file/],
    [
      'is a link that leaves the workspace',
      'mkdir out; ln -s /etc/passwd out/report.md',
      /outside of the workspace/,
    ],
    ['is behind a link that leaves it', 'ln -s /etc out; true', /missing|outside/],
  ])('is refused if it %s', async (_, script, message) => {
    const lab = await workLab();
    expect(await lab.unit(runBody(script, { artifacts })).work()).toMatchObject({
      kind: 'failed',
      error: { code: 'ARTIFACT_INVALID', message: expect.stringMatching(message), hint: expect.any(String) },
    });
    expect(existsSync(join(lab.environment.stateDir, 'artifacts', lab.runId, 'fix', 'report.md'))).toBe(
      false,
    );
  });

  test('is refused if its path leads outside of the workspace', async () => {
    const lab = await workLab();
    const outside = [{ name: '../../x', path: '../../../../../a.txt' }];
    expect(await lab.unit(runBody('true', { artifacts: outside })).work()).toMatchObject({
      error: { code: 'ARTIFACT_INVALID', message: expect.stringContaining('outside') },
    });
  });
});

describe('a workspace after a crash', () => {
  test('is created if the crash came between its event and its creation', async () => {
    const lab = await workLab({ setup: ['echo s >> setups'] });
    const unit = lab.unit(runBody('cat setups', {}));
    await unit.work({ crashAfter: 'workspace.created' });
    expect(await unit.work()).toMatchObject({ kind: 'completed' });
    expect(unit.of('workspace.created')).toHaveLength(1);
    expect(unit.read('setups')).toBe('s\n');
  });

  test('is reused as it was left, without another setup', async () => {
    const lab = await workLab({
      setup: ['echo s >> setups'],
      agents: [scripted([{ run: 'echo w >> works' }, { say: 'Done.' }])],
    });
    const unit = lab.unit(agentBody());
    await unit.work({ crashAfter: 'session.started' });
    expect(await unit.work()).toMatchObject({ kind: 'completed' });
    expect(unit.read('setups')).toBe('s\n');
    expect(unit.of('workspace.created')).toHaveLength(1);
  });

  test('is created and set up again if it was lost', async () => {
    const lab = await workLab({ setup: ['echo s >> setups'], agents: [scripted([{ say: 'Done.' }])] });
    const unit = lab.unit(agentBody());
    await unit.work({ crashAfter: 'session.started' });
    rmSync(unit.folder, { recursive: true });
    expect(await unit.work()).toMatchObject({ kind: 'completed' });
    expect(unit.of('workspace.saved')).toHaveLength(1);
  });

  test('reruns a setup that was interrupted', async () => {
    const lab = await workLab({ setup: ['echo s >> setups; echo here; test -f go || sleep 1000'] });
    const unit = lab.unit(runBody('true', {}));
    const here = lab.seen(each => each.kind === 'output' && each.line === 'here');
    expect(await unit.work({ cancelWhen: here })).toMatchObject({ kind: 'cancelled' });
    lab.git.write('go', '', unit.folder);
    expect(await unit.work()).toMatchObject({ kind: 'completed' });
    expect(unit.read('setups')).toBe('s\ns\n');
  });
});

test('work on another branch of the workspace is moved to its own branch', async () => {
  const lab = await workLab();
  const unit = lab.unit(runBody('git switch -qc elsewhere; echo x > b.txt', {}));
  expect(await unit.work()).toMatchObject({ kind: 'completed' });
  expect(unit.git('show', `${unit.of('workspace.created')[0]?.branch}:b.txt`)).toBe('x');
  expect(unit.git('branch', '--show-current')).toBe(unit.of('workspace.created')[0]?.branch);
});

test('a repository inside the workspace is refused, and nothing is lost', async () => {
  const lab = await workLab();
  const unit = lab.unit(runBody('git init -q inner; echo x > inner/x', {}));
  expect(await unit.work()).toMatchObject({
    error: { code: 'WORKSPACE_FAILED', message: expect.stringContaining('another repository') },
  });
  expect(unit.read('inner/x')).toBe('x\n');
});

test('a step may name its branch, which its copies do not share', async () => {
  const lab = await workLab();
  const workspace = {
    kind: 'worktree',
    readonly: false,
    base: { kind: 'run' },
    branch: () => 'feature/x',
  } as const;
  const fanOut = { kind: 'concurrency', items: () => [{}, {}], onFailure: 'fail-fast' } as const;
  const unit = lab.unit(runBody('true', { workspace }), { worker: 1, model: { fanOut } });
  expect(await unit.work()).toMatchObject({ kind: 'completed' });
  expect(unit.of('workspace.created')).toMatchObject([{ branch: 'feature/x-1' }]);
  const bad = lab.unit(runBody('true', { workspace: { ...workspace, branch: () => '--force' } }), {
    step: 'bad',
  });
  expect(await bad.work()).toMatchObject({ error: { code: 'WORKSPACE_FAILED' } });
});

test('an existing branch is used as is, even by the next attempt', async () => {
  const lab = await workLab();
  lab.git.git('switch', '-qc', 'feature');
  const mine = lab.git.commit(lab.root, 'mine.txt', 'mine');
  lab.git.git('switch', '-q', 'main');
  const workspace = {
    kind: 'worktree',
    readonly: false,
    base: { kind: 'run' },
    branch: () => 'feature',
  } as const;
  const unit = lab.unit(runBody('cat mine.txt; echo x > x.txt; test -f go', { workspace }));
  const first = await unit.work();
  expect(first).toMatchObject({ error: { code: 'EXIT_NONZERO' } });
  expect(unit.of('workspace.saved')).toMatchObject([{ commits: 1, files: 1 }]);
  unit.retry(first);
  await unit.work();
  expect(unit.of('workspace.created').map(({ base }) => base)).toEqual([mine, mine]);
  expect(unit.git('log', '--format=%s', `${mine}..feature`)).toBe('fix: unfinished work');
});

test('a new attempt starts from the new commit of a dependency that was rerun', async () => {
  const lab = await workLab();
  const workspace = { kind: 'worktree', readonly: false, base: { kind: 'step', id: 'a' } } as const;
  let commit = lab.git.git('rev-parse', 'main');
  const unit = lab.unit(runBody('ls; test -f c.txt', { workspace }), { workOf: () => ({ commit }) });
  const first = await unit.work();
  commit = lab.git.commit(lab.root, 'c.txt', 'c');
  unit.retry(first);
  expect(await unit.work()).toMatchObject({ kind: 'completed' });
});

test('git in a workspace ignores the variables of a hook that started Reprise', async () => {
  const lab = await workLab();
  const { env } = lab.environment;
  Object.assign(env, { GIT_DIR: join(lab.root, '.git'), GIT_INDEX_FILE: join(lab.root, '.git/index') });
  const before = lab.git.git('rev-parse', 'HEAD');
  const unit = lab.unit(runBody('echo x > x.txt; git add .; git commit -qm x', {}));
  expect(await unit.work()).toMatchObject({ kind: 'completed' });
  expect(lab.git.git('rev-parse', 'HEAD')).toBe(before);
  expect(unit.git('log', '-1', '--format=%s')).toBe('x');
});
