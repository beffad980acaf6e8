import { describe, expect, it } from 'vitest';
import { createProject, defineModule, parseLines, type TestProject, until } from './run-inline.ts';

const approval = `
steps:
  - { id: build, run: "echo build >> marks" }
  - { id: ok, needs: [build], approve: { message: "Ship it?", choices: [approve, later, reject] } }
  - { id: ship, needs: [ok], run: "echo \${{ steps.ok.outputs.choice }} >> marks" }
`;
const twoApprovals = `
steps:
  - { id: a, approve: "First?" }
  - { id: b, approve: "Second?" }
`;
const listener = `
import { step, workflow } from '${defineModule}';
const hear = step('hear', { run: (_, ctx) => ctx.waitForSignal('go') });
export default workflow('listener', { steps: [hear] });
`;

const newestRun = async (project: TestProject): Promise<string> => {
  const [run] = parseLines<{ id: string }>((await project.run(['list', '--json'])).stdout);
  return run?.id ?? '';
};

/** Starts a run with --wait, and returns when it has printed the event. */
const startWaiting = async (project: TestProject, file: string, event: string) => {
  const run = project.start(['run', file, '--wait', '--json']);
  await until(() => run.stdout.includes(event));
  return { run, id: parseLines<{ runId: string }>(run.stdout)[0]?.runId ?? '' };
};

describe('reprise approve', () => {
  it('answers a waiting run, which a resume continues', async () => {
    const project = createProject({ files: { 'approval.yaml': approval } });
    const stopped = await project.run(['run', 'approval.yaml']);
    expect(stopped.code).toBe(3);
    expect(stopped.stdout).toBe('');
    expect(stopped.stderr).toMatch(/next: reprise approve \w+ ok/);
    const id = await newestRun(project);
    const answered = await project.run(['approve', id, '--choice', 'later', '--comment', 'tomorrow']);
    expect(answered).toMatchObject({ code: 0, stdout: '' });
    expect(project.stable(answered.stderr)).toBe(
      'answered ok of run <run> with later; continue with: reprise resume <run>\n',
    );
    expect(await project.run(['resume', id.slice(0, 6)])).toMatchObject({ code: 0 });
    expect(project.read('marks')).toBe('build\nlater\n');
    const events = parseLines((await project.run(['history', '--json'])).stdout);
    expect(events).toContainEqual(
      expect.objectContaining({
        type: 'approval.given',
        data: { choice: 'later', by: 'ana', comment: 'tomorrow' },
      }),
    );
  });

  it('reaches a waiting process without taking over its run', async () => {
    const project = createProject({ files: { 'approval.yaml': approval } });
    const { run, id } = await startWaiting(project, 'approval.yaml', 'approval.requested');
    const answered = await project.run(['approve', id, 'ok', '--by', 'ben']);
    expect(answered.code).toBe(0);
    expect(answered.stderr).toContain(`process ${run.pid} on`);
    const { code, stdout } = await run.ended;
    expect(code).toBe(0);
    expect(stdout).toContain('"by":"ben"');
    expect(stdout).not.toContain('run.resumed');
  });

  it('fails the step on --reject', async () => {
    const project = createProject({ files: { 'approval.yaml': approval } });
    await project.run(['run', 'approval.yaml']);
    await project.run(['approve', await newestRun(project), '--reject', '--comment', 'too risky']);
    const { code, stderr } = await project.run(['resume']);
    expect(code).toBe(1);
    expect(stderr).toContain('rejected by ana: too risky');
    expect(project.read('marks')).toBe('build\n');
  });

  it('refuses ambiguous, unknown and repeated answers, and lists what is waiting', async () => {
    const project = createProject({ files: { 'two.yaml': twoApprovals } });
    await project.run(['run', 'two.yaml']);
    const id = await newestRun(project);
    const refusal = async (...args: string[]) => {
      const { code, stderr } = await project.run(['approve', id, ...args]);
      expect(code, stderr).toBe(2);
      return project.stable(stderr);
    };
    expect(await refusal()).toMatchInlineSnapshot(`
      "error[NOT_WAITING]: several steps of run <run> are waiting for an approval:
        a: First? (approve, reject)
        b: Second? (approve, reject)
        hint: name one: reprise approve <run> a
      "
    `);
    expect(await refusal('c')).toMatchInlineSnapshot(`
      "error[NOT_WAITING]: step c of run <run> is not waiting for an approval; these steps are:
        a: First? (approve, reject)
        b: Second? (approve, reject)
        hint: answer one: reprise approve <run> a
      "
    `);
    expect(await refusal('a', '--choice', 'aprove')).toMatchInlineSnapshot(`
      "error[CHOICE_UNKNOWN]: step a has no choice aprove; its choices are approve, reject
        hint: answer with: reprise approve <run> a --choice approve
      "
    `);
    expect(await refusal('a', '--choice', 'approve', '--reject')).toMatchInlineSnapshot(`
      "error[USAGE]: --choice and --reject cannot be combined
      "
    `);
    expect(await project.run(['approve', id, 'a', '--by', 'ana'])).toMatchObject({ code: 0 });
    expect(await refusal('a')).toMatchInlineSnapshot(`
      "error[NOT_WAITING]: step a of run <run> was already answered with approve by ana
        hint: continue with: reprise resume <run>
      "
    `);
    expect(await project.run(['approve', id])).toMatchObject({ code: 0 });
    expect(await project.run(['resume'])).toMatchObject({ code: 0 });
    expect(await refusal('a')).toMatchInlineSnapshot(`
      "error[RUN_ENDED]: run <run> completed at <at>, so there is nothing to approve
        hint: see the result: reprise show <run>
      "
    `);
  });
});

describe('reprise signal', () => {
  it.each([
    [['{"n": 7}'], { n: 7 }],
    [['plain text'], 'plain text'],
    [['null'], null],
    [[], null],
  ])('delivers %j to a waiting run', async (payload, heard) => {
    const project = createProject({ files: { 'listener.mjs': listener } });
    expect(await project.run(['run', 'listener.mjs'])).toMatchObject({ code: 3 });
    const sent = await project.run(['signal', await newestRun(project), 'go', ...payload]);
    expect(project.stable(sent.stderr)).toBe('sent go to run <run>; continue with: reprise resume <run>\n');
    const { code, stdout } = await project.run(['resume']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ hear: heard });
  });

  it('reaches a waiting process', async () => {
    const project = createProject({ files: { 'listener.mjs': listener } });
    const { run, id } = await startWaiting(project, 'listener.mjs', 'step.suspended');
    expect(await project.run(['signal', id, 'go', '1'])).toMatchObject({ code: 0 });
    expect(parseLines((await run.ended).stdout).at(-1)).toMatchObject({
      status: 'completed',
      output: { hear: 1 },
    });
  });

  it('warns if no step waits for it, and is kept', async () => {
    const project = createProject({ files: { 'listener.mjs': listener } });
    await project.run(['run', 'listener.mjs']);
    const { code, stderr } = await project.run(['signal', await newestRun(project), 'goo']);
    expect(code).toBe(0);
    expect(project.stable(stderr)).toBe(
      [
        'sent goo to run <run>; continue with: reprise resume <run>',
        'warning: no step of run <run> waits for signal goo; the run keeps it in case one does later; did you mean go?',
        '',
      ].join('\n'),
    );
  });

  it('is refused if the run has ended', async () => {
    const project = createProject({ files: { 'one.yaml': 'steps:\n  - { id: a, run: "true" }\n' } });
    await project.run(['run', 'one.yaml']);
    const { code, stderr } = await project.run(['signal', await newestRun(project), 'go']);
    expect(code).toBe(2);
    expect(project.stable(stderr)).toMatchInlineSnapshot(`
      "error[RUN_ENDED]: run <run> completed at <at>, so there is nothing to signal
        hint: see the result: reprise show <run>
      "
    `);
  });
});

describe('reprise cancel', () => {
  const slow =
    'steps:\n  - { id: slow, run: "echo slow >> marks; exec sleep 1000" }\n  - { id: after, needs: [slow], run: "echo after >> marks" }\n';

  it('cancels a running run and waits until it has ended', async () => {
    const project = createProject({ files: { 'slow.yaml': slow } });
    const run = project.start(['run', 'slow.yaml']);
    await until(() => project.read('marks') === 'slow\n');
    const cancelled = await project.run(['cancel', await newestRun(project), '--reason', 'wrong branch']);
    expect(cancelled.code, cancelled.stderr).toBe(0);
    expect(project.stable(cancelled.stderr)).toBe(
      'cancelled run <run>; to continue it later: reprise resume <run>\n',
    );
    const { code, stderr } = await run.ended;
    expect(code).toBe(1);
    expect(stderr).toContain('wrong branch');
    expect(parseLines((await project.run(['list', '--json'])).stdout)).toMatchObject([
      { status: 'cancelled' },
    ]);
  });

  it('does not wait for the run to end with --no-wait', async () => {
    const project = createProject({ files: { 'slow.yaml': slow } });
    const run = project.start(['run', 'slow.yaml']);
    await until(() => project.read('marks') === 'slow\n');
    const asked = await project.run(['cancel', await newestRun(project), '--no-wait']);
    expect(asked.code).toBe(0);
    expect(asked.stderr).toContain(`asked process ${run.pid} on`);
    expect(await run.ended).toMatchObject({ code: 1 });
  });

  it('cancels a waiting run immediately, without running anything', async () => {
    const project = createProject({ files: { 'approval.yaml': approval } });
    await project.run(['run', 'approval.yaml']);
    const id = await newestRun(project);
    expect(await project.run(['cancel', id])).toMatchObject({ code: 0 });
    expect(project.read('marks')).toBe('build\n');
    const last = parseLines((await project.run(['history', '--json'])).stdout).at(-1);
    expect(last).toMatchObject({ type: 'run.cancelled', data: { reason: 'cancelled by ana' } });
    const again = await project.run(['cancel', id]);
    expect(again.code).toBe(2);
    expect(again.stderr).toContain('error[RUN_ENDED]');
  });

  it('cancels a run whose process was killed', async () => {
    const project = createProject({ files: { 'slow.yaml': slow } });
    const run = project.start(['run', 'slow.yaml']);
    await until(() => project.read('marks') === 'slow\n');
    run.kill('SIGKILL');
    await run.ended;
    expect(await project.run(['cancel', await newestRun(project)])).toMatchObject({ code: 0 });
    expect(project.read('marks')).toBe('slow\n');
    expect(parseLines((await project.run(['list', '--json'])).stdout)).toMatchObject([
      { status: 'cancelled' },
    ]);
  });

  it('leaves the cancellation to the next resume if the definition cannot be loaded', async () => {
    const project = createProject({ files: { 'approval.yaml': approval } });
    await project.run(['run', 'approval.yaml']);
    project.write({ 'approval.yaml': 'steps: 7\n' });
    const cancelled = await project.run(['cancel', await newestRun(project)]);
    expect(cancelled.code).toBe(0);
    expect(cancelled.stderr).toContain('will be cancelled when it is resumed');
    project.write({ 'approval.yaml': approval });
    expect(await project.run(['resume'])).toMatchObject({ code: 1 });
    expect(parseLines((await project.run(['list', '--json'])).stdout)).toMatchObject([
      { status: 'cancelled' },
    ]);
  });
});
