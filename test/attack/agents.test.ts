import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { describe, expect, it } from 'vitest';
import { parseLines, until } from '../e2e/run-inline.ts';
import { type WorkerProject, workerProject } from '../e2e/worker-project.ts';

/** The CLI must end by itself: a test that takes longer has found a hang. */
const limit = 60_000;

const working = 'echo good > good.txt; echo "<next>land</next>"';

describe('numbers that an agent cannot mean', () => {
  it.each([
    '"inputTokens":10.5,"outputTokens":1',
    '"inputTokens":-4,"outputTokens":1',
    '"inputTokens":1e300,"outputTokens":1e999',
    '"inputTokens":1,"outputTokens":1,"costUsd":-3',
  ])('do not make the history unreadable: %s', { timeout: limit }, async usage => {
    const project = workerProject({
      agents: {
        implement: `echo x > x.txt; echo '{"type":"usage",${usage}}'; echo '{"type":"result","text":"<next>land</next>"}'`,
      },
      tasks: { one: '# One\n' },
    });
    const worker = await project.worker(['--until-idle']).ended;
    expect(worker.code, worker.stderr).toBe(0);
    expect(project.landed()).toEqual(['one']);
    for (const args of [['list', '--json'], ['show'], ['logs'], ['history', '--json'], ['replay']]) {
      const { code, stderr } = await project.cli(args);
      expect(code, `${args.join(' ')}: ${stderr}`).toBe(0);
    }
  });
});

/** Starts a worker, kills it during its first session, and makes the history of its run unreadable. */
async function withUnreadableRun(): Promise<{ readonly project: WorkerProject; readonly run: string }> {
  const project = workerProject({
    agents: { implement: `if [ ! -s $MARKS ]; then echo started >> $MARKS; sleep 60; fi\n${working}` },
    tasks: { one: '# One\n', two: '# Two\n' },
  });
  const first = project.worker([]);
  await until(() => project.marks().length > 0);
  first.kill('SIGKILL');
  await first.ended;
  const db = new DatabaseSync(join(project.root, '.reprise/state/reprise.db'));
  db.exec(`UPDATE events SET data = '{"agent":""}' WHERE type = 'session.started'`);
  db.close();
  const [run] = await project.inStore(store => store.list({ status: 'running' }));
  return { project, run: run?.runId ?? '' };
}

describe('a run whose history cannot be read', () => {
  it('does not keep workers from its task and from other tasks', { timeout: limit }, async () => {
    const { project, run } = await withUnreadableRun();
    const status = await project.cli(['status']);
    expect(status.code, status.stderr).toBe(0);
    const worker = await project.worker(['--until-idle']).ended;
    expect(worker.code, worker.stderr).toBe(0);
    expect(worker.stderr).toContain(`run ${run} cannot be read and was marked as failed`);
    expect(project.landed().toSorted()).toEqual(['one', 'two']);
    expect(project.leftRunning()).toEqual([]);
    const list = await project.cli(['list', '--json']);
    expect(list.code, list.stderr).toBe(0);
    const unreadable = parseLines<{ id: string; status: string; unreadable?: string }>(list.stdout).filter(
      each => each.unreadable !== undefined,
    );
    expect(unreadable).toMatchObject([{ id: run, status: 'failed' }]);
    const show = await project.cli(['show', run]);
    expect([show.code, show.stderr]).toEqual([1, expect.stringContaining(`of run ${run} cannot be read`)]);
  });

  it('can be cancelled', { timeout: limit }, async () => {
    const { project, run } = await withUnreadableRun();
    const cancel = await project.cli(['cancel', run]);
    expect(cancel.code, cancel.stderr).toBe(0);
    expect(cancel.stderr).toContain(`run ${run} was marked as failed; its history is kept`);
    expect(project.leftRunning()).toEqual([]);
    const worker = await project.worker(['--until-idle']).ended;
    expect(worker.code, worker.stderr).toBe(0);
    expect(project.landed().toSorted()).toEqual(['one', 'two']);
  });
});
