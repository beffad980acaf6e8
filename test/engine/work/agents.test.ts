import { describe, expect, test } from 'vitest';
import { agentBody, agentOf, command, runBody, scripted, workLab } from './support.ts';

const writes = (path: string, content: string) => ({ write: { path, content } });

describe('an agent in a workspace', () => {
  test('works on its own branch, and its work is committed', async () => {
    const lab = await workLab({ agents: [scripted([writes('b.txt', 'two\n'), { say: 'Wrote b.\nMore.' }])] });
    const { status: _, ...before } = lab.git.fingerprint();
    const unit = lab.unit(agentBody());
    expect(await unit.work()).toEqual({ kind: 'completed', output: { text: 'Wrote b.\nMore.' } });
    expect(unit.types).toEqual([
      'workspace.created',
      'session.started',
      'session.named',
      'session.ended',
      'workspace.saved',
    ]);
    expect(unit.of('workspace.created')).toEqual([
      {
        path: `.reprise/workspaces/flow/${lab.runId}/fix`,
        branch: `reprise/flow/${lab.runId}/fix`,
        base: lab.git.git('rev-parse', 'main'),
        ports: { first: expect.any(Number), size: 10 },
      },
    ]);
    expect(unit.of('workspace.saved')).toEqual([
      {
        commit: lab.git.git('rev-parse', `reprise/flow/${lab.runId}/fix`),
        commits: 1,
        files: 1,
        insertions: 1,
        deletions: 0,
      },
    ]);
    expect(unit.git('log', '-1', '--format=%s')).toBe('fix: Wrote b.');
    expect(unit.git('status', '--porcelain')).toBe('');
    expect(lab.git.fingerprint()).toMatchObject(before);
    expect(lab.git.git('status', '--porcelain')).toBe('');
    expect(lab.log('fix.1.log')).toContain('Wrote b.');
  });

  test('finds run, step, copy, workspace, ports and artifacts in its environment', async () => {
    const agent = agentOf({ command: ['sh', '-c', 'env | grep ^REPRISE_ | sort; pwd'] });
    const lab = await workLab({ agents: [agent] });
    const view = { outcome: 'success', conclusion: 'success', outputs: {} } as const;
    const unit = lab.unit(agentBody({ env: () => ({ REPRISE_EXTRA: 'yes' }) }), {
      worker: 2,
      scope: { steps: { 'the-plan': { ...view, artifacts: { 'to.do': '/x/y.md' } } } },
    });
    const end = await unit.work();
    const said = end.kind === 'completed' && (end.output as { text: string }).text.split('\n');
    const ports = unit.of('workspace.created')[0]?.ports;
    expect(said).toEqual([
      'REPRISE_ARTIFACT_THE_PLAN_TO_DO=/x/y.md',
      'REPRISE_ATTEMPT=1',
      'REPRISE_EXTRA=yes',
      'REPRISE_INCARNATION=tester:2',
      `REPRISE_PORT=${ports?.first}`,
      'REPRISE_PORTS=10',
      `REPRISE_RUN=${lab.runId}`,
      'REPRISE_STEP=fix',
      'REPRISE_WORKER=2',
      `REPRISE_WORKSPACE=${unit.folder}`,
      unit.folder,
    ]);
    expect(unit.folder).toMatch(/fix\/worker_2$/);
  });

  test('gets the same prompt in every copy, byte for byte', async () => {
    const lab = await workLab({ agents: [agentOf({ command: ['cat'] })] });
    const prompts = [];
    for (const worker of [0, 1, 2]) prompts.push(await lab.unit(agentBody(), { worker }).work());
    expect(new Set(prompts.map(end => JSON.stringify(end))).size).toBe(1);
    expect(prompts[0]).toEqual({ kind: 'completed', output: { text: 'Fix it.' } });
  });

  test('fails with a suggestion if it is not defined', async () => {
    const lab = await workLab({ agents: [agentOf()] });
    expect(await lab.unit(agentBody({ agent: 'codr' })).work()).toMatchObject({
      kind: 'failed',
      error: {
        code: 'AGENT_UNKNOWN',
        message: 'there is no agent named `codr`',
        hint: 'did you mean `coder`?',
      },
    });
  });

  test('fails with instructions outside of a repository', async () => {
    const lab = await workLab({ agents: [agentOf()], bare: true });
    expect(await lab.unit(agentBody(), { base: undefined }).work()).toMatchObject({
      kind: 'failed',
      error: { code: 'NOT_A_REPOSITORY', hint: expect.stringMatching(/git init.*workspace: none/) },
    });
  });

  test('may work in the project folder', async () => {
    const lab = await workLab({
      agents: [scripted([writes('b.txt', 'two\n'), { say: 'Done.' }])],
      bare: true,
    });
    const unit = lab.unit(
      agentBody({ work: { workspace: { kind: 'none' }, checks: [command('test -f b.txt')] } }),
      {
        base: undefined,
      },
    );
    expect(await unit.work()).toEqual({ kind: 'completed', output: { text: 'Done.' } });
    expect(unit.types).toEqual(['session.started', 'session.named', 'session.ended', 'work.checked']);
    expect(unit.of('work.checked')).toEqual([
      { passed: true, checks: [{ command: 'test -f b.txt', passed: true }] },
    ]);
  });

  test('whose work fails a check is asked again, and history says why', async () => {
    const lab = await workLab({ agents: [scripted([{ run: 'echo x >> b.txt' }, { say: 'Done.' }])] });
    const checks = [command('true'), command('test "$(wc -l < b.txt)" = 3')];
    const unit = lab.unit(agentBody({ rework: 1, work: { checks } }));
    expect(await unit.work()).toMatchObject({ kind: 'failed', error: { code: 'CHECK_FAILED' } });
    const failed = {
      passed: false,
      checks: [
        { command: 'true', passed: true },
        { command: 'test "$(wc -l < b.txt)" = 3', passed: false, exitCode: 1 },
      ],
      error: expect.objectContaining({ code: 'CHECK_FAILED', exitCode: 1 }),
    };
    expect(unit.of('work.checked')).toEqual([{ ...failed, rework: 1 }, failed]);
    expect(unit.types.filter(type => type === 'session.started' || type === 'work.checked')).toEqual([
      'session.started',
      'work.checked',
      'session.started',
      'work.checked',
    ]);
  });

  test('whose answer is invalid is asked again, and history says why', async () => {
    const lab = await workLab({ agents: [scripted([{ say: 'no JSON' }])] });
    const output = { schema: {}, parse: (value: unknown) => value };
    const unit = lab.unit(agentBody({ rework: 1, output }));
    expect(await unit.work()).toMatchObject({ kind: 'failed', error: { code: 'OUTPUT_INVALID' } });
    expect(unit.of('work.checked')).toMatchObject([
      { passed: false, checks: [], error: { code: 'OUTPUT_INVALID' }, rework: 1 },
      { passed: false, checks: [], error: { code: 'OUTPUT_INVALID' } },
    ]);
  });
});

describe('a script in a workspace', () => {
  test('runs in that workspace, and its output is read', async () => {
    const lab = await workLab();
    const unit = lab.unit(runBody('echo two > b.txt; echo "n=1" >> "$REPRISE_OUTPUT"; pwd', {}));
    expect(await unit.work()).toEqual({ kind: 'completed', output: { n: '1' } });
    expect(unit.read('b.txt')).toBe('two\n');
    expect(lab.log('fix.1.log')).toBe(`${unit.folder}\n`);
    expect(unit.of('workspace.saved')).toMatchObject([{ commits: 1, files: 1 }]);
  });

  test('runs in the project folder if it has no work rules', async () => {
    const lab = await workLab();
    const unit = lab.unit(runBody('echo two > b.txt'));
    expect(await unit.work()).toEqual({ kind: 'completed', output: {} });
    expect(unit.types).toEqual([]);
    expect(lab.git.git('status', '--porcelain')).toBe('?? b.txt');
  });

  test('starts from the commit of another step', async () => {
    const lab = await workLab();
    const first = lab.unit(runBody('echo two > b.txt', {}), { step: 'first' });
    await first.work();
    const commit = first.of('workspace.saved')[0]?.commit;
    const workspace = { kind: 'worktree', readonly: false, base: { kind: 'step', id: 'first' } } as const;
    const second = lab.unit(runBody('cat b.txt', { workspace }), { workOf: () => ({ commit }) });
    expect(await second.work()).toMatchObject({ kind: 'completed' });
    expect(second.of('workspace.created')).toMatchObject([{ base: commit }]);
    const none = lab.unit(runBody('true', { workspace }), { step: 'third' });
    expect(await none.work()).toMatchObject({
      error: { code: 'WORKSPACE_FAILED', message: 'step first has no commit to start from' },
    });
  });
});
