import { describe, expect, it } from 'vitest';
import { type WorkerProject, workerProject } from '../e2e/worker-project.ts';

const limit = 120_000;
const hostile = 'workers: { agent: c, verify: "touch pwned" }\n';

/** Tasks `plain` and `risky`. The agent changes reprise.yaml for `risky`, and counts its sessions in `$MARKS`. */
const twoTasks = (config = '', file = 'reprise.yaml'): WorkerProject =>
  workerProject({
    agents: {
      coder: `echo "session $REPRISE_TASK" >> "$MARKS"
if [ "$REPRISE_TASK" = risky ]; then printf '${hostile.trim()}\\n' > ${file}; else echo done > plain.txt; fi
echo '<next>land</next>'`,
    },
    tasks: { plain: '# Plain', risky: '# Risky' },
    config: `workers: { agent: coder }\n${config}`,
  });

const mainHas = (project: WorkerProject, file: string) => project.git('show', `main:${file}`);
const waitingRun = (project: WorkerProject) =>
  project.inStore(async store => (await store.list({ status: 'waiting' }))[0]);

describe('work that changes a protected file', () => {
  it('waits for an approval, and the worker continues with other tasks and exits with 3', {
    timeout: limit,
  }, async () => {
    const project = twoTasks();
    const before = mainHas(project, 'reprise.yaml');
    const { code, stderr } = await project.worker(['--until-idle']).ended;
    expect({ code, stderr }).toMatchObject({ code: 3 });
    expect(stderr).toContain(
      'risky waits for an approval: landing on main changes protected files: reprise.yaml',
    );
    expect(project.landed()).toEqual(['plain']);
    expect(mainHas(project, 'reprise.yaml')).toBe(before);
    expect((await project.leftovers()).locks).toEqual([]);
    const history = await project.inStore(async store =>
      store.read((await waitingRun(project))?.runId ?? ''),
    );
    expect(history.find(({ type }) => type === 'approval.requested')?.data).toMatchObject({
      files: [{ path: 'reprise.yaml' }],
      diff: expect.stringContaining('+workers: { agent: c, verify: "touch pwned" }'),
    });
    // Nothing happens to it until a person answers.
    expect(await project.worker(['--until-idle']).ended).toMatchObject({ code: 0 });
    expect(project.landed()).toEqual(['plain']);

    expect(await project.cli(['approve', 'risky'])).toMatchObject({ code: 0 });
    expect(project.landed()).toEqual(['plain', 'risky']);
    expect(mainHas(project, 'reprise.yaml')).toBe(hostile.trim());
    expect(project.marks().toSorted()).toEqual(['session plain', 'session risky']);
    expect(project.has('pwned')).toBe(false);
  });

  it('is parked when a person rejects it', { timeout: limit }, async () => {
    const project = twoTasks();
    await project.worker(['--until-idle']).ended;
    const run = (await waitingRun(project))?.runId ?? '';
    expect(await project.cli(['approve', run, '--reject', '--comment', 'no'])).toMatchObject({ code: 6 });
    expect(project.landed()).toEqual(['plain']);
    expect(project.git('show', 'reprise/parked/risky:reprise.yaml')).toBe(hostile.trim());
  });

  it('lands when a person lands it', { timeout: limit }, async () => {
    const project = twoTasks('', '.mcp.json');
    await project.worker(['--until-idle']).ended;
    const run = (await waitingRun(project))?.runId ?? '';
    const { code, stderr } = await project.cli(['land', run]);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(project.landed()).toEqual(['plain', 'risky']);
    expect(await waitingRun(project)).toBeUndefined();
    const claims = await project.inStore(store => store.claims.list());
    expect(claims.map(({ task, state }) => [task, state])).toEqual([
      ['plain', 'landed'],
      ['risky', 'landed'],
    ]);
  });

  it('lands at once if the base commit says so, and not if only the work does', {
    timeout: limit,
  }, async () => {
    const project = twoTasks('land_protected: true\n');
    expect(await project.worker(['--until-idle']).ended).toMatchObject({ code: 0 });
    expect(project.landed()).toEqual(['plain', 'risky']);

    const sly = workerProject({
      agents: { coder: `echo 'land_protected: true' >> reprise.yaml; echo '<next>land</next>'` },
      tasks: { risky: '# Risky' },
      config: 'workers: { agent: coder }\n',
    });
    expect(await sly.worker(['--until-idle']).ended).toMatchObject({ code: 3 });
    expect(sly.landed()).toEqual([]);
  });

  it.each(['branch', 'pr'])('waits before it is delivered with land: %s', { timeout: limit }, async mode => {
    const project = workerProject({
      agents: {
        coder: `mkdir -p .github/workflows; echo x > .github/workflows/ci.yml; echo '<next>land</next>'`,
      },
      tasks: { risky: '# Risky' },
      config: `workers: { agent: coder, land: ${mode}, pr_command: 'echo pr >> "$MARKS"' }\n`,
    });
    project.git('init', '-q', '--bare', `${project.root}/.git/origin.git`);
    project.git('remote', 'add', 'origin', `${project.root}/.git/origin.git`);
    expect(await project.worker(['--until-idle']).ended).toMatchObject({ code: 3 });
    expect(project.git('branch', '--list', 'reprise/task/*')).toBe('');
    expect(project.marks()).toEqual([]);
    expect(await project.cli(['approve', 'risky'])).toMatchObject({ code: 0 });
    expect(project.git('branch', '--list', 'reprise/task/*')).toContain('reprise/task/risky');
  });

  it('waits in the land step of a workflow, which holds neither lock nor slot', {
    timeout: limit,
  }, async () => {
    const project = workerProject({
      agents: { coder: `echo session >> "$MARKS"; echo x > .mcp.json` },
    });
    project.write({
      'w.yaml': `name: w
runtime: { max_concurrent_workers: 1 }
steps:
  - { id: fix, agent: coder, prompt: x }
  - { id: land, needs: [fix], land: main, from: fix }
  - { id: other, needs: [fix], run: echo other }
`,
    });
    const first = await project.outcome(['run', 'w.yaml']);
    expect(first).toMatchObject({ code: 3, status: 'waiting' });
    expect(first.events.some(({ type, step }) => type === 'step.completed' && step === 'other')).toBe(true);
    expect((await project.leftovers()).locks).toEqual([]);
    expect(await project.cli(['approve', first.run])).toMatchObject({ code: 0 });
    expect(await project.outcome(['resume', first.run])).toMatchObject({ code: 0, status: 'completed' });
    expect(mainHas(project, '.mcp.json')).toBe('x');
    expect(project.marks()).toEqual(['session']);
  });
});
