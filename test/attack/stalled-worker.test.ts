import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadSqlite } from '../../src/store/sqlite/connection.ts';
import { openSqliteStore } from '../../src/store/sqlite/store.ts';
import { type RunningCli, until } from '../e2e/run-inline.ts';
import { nothingLeft, type WorkerProject, workerProject } from '../e2e/worker-project.ts';
import { stateOf } from '../support/state.ts';

/** Sets the lease of every run to a time that is long past, as a suspend or a jump of the clock does. */
async function expireLeases({ root }: WorkerProject): Promise<void> {
  const store = await openSqliteStore({ file: join(root, stateOf(root), 'reprise.db') });
  for (const { runId, owner } of await store.list())
    if (owner) await store.renew(runId, owner, '2000-01-01T00:00:00.000Z');
  await store.close();
}

/** Stops a worker outside of a transaction of the store: a process that is stopped in one blocks the store. */
async function stop({ root }: WorkerProject, worker: RunningCli): Promise<void> {
  const { DatabaseSync } = loadSqlite();
  for (;;) {
    worker.kill('SIGSTOP');
    const db = new DatabaseSync(join(root, stateOf(root), 'reprise.db'), { timeout: 0 });
    try {
      db.exec('BEGIN IMMEDIATE; ROLLBACK');
      return;
    } catch {
      worker.kill('SIGCONT');
      await new Promise(setImmediate);
    } finally {
      db.close();
    }
  }
}

/** Makes a stopped process look as if it had been stopped when the machine started. */
function stallForLong({ root }: WorkerProject): void {
  const locks = join(root, '.git/reprise/locks');
  for (const name of readdirSync(locks, { recursive: true, encoding: 'utf8' })) {
    if (basename(name) !== 'holder.json') continue;
    const row = JSON.parse(readFileSync(join(locks, name), 'utf8'));
    if (row.holder) writeFileSync(join(locks, name), JSON.stringify({ ...row, beat: 1 }));
  }
}

const waits = 'while [ ! -e "$MARKS.go" ]; do sleep 0.05; done';

it('a stopped worker keeps its run, does not block other tasks, and finishes when it is continued', async () => {
  const project = workerProject({
    agents: {
      implement: `echo "$REPRISE_TASK" >> "$MARKS"; [ "$REPRISE_TASK" = two ] || { ${waits}; }
echo x > "$REPRISE_TASK.txt"; echo "<next>land</next>"`,
    },
    tasks: { one: '# One\n', two: '# Two\n' },
  });
  const first = project.worker(['--until-idle', '--name', 'first']);
  await until(() => project.marks().includes('one'));
  await stop(project, first);
  await expireLeases(project);
  const second = project.worker(['--max-tasks', '1', '--name', 'second']);
  expect((await second.ended).code, second.stderr).toBe(0);
  expect(project.landed()).toEqual(['two']);
  project.tell('go', '');
  first.kill('SIGCONT');
  expect((await first.ended).code, first.stderr).toBe(0);
  expect(project.landed()).toEqual(['two', 'one']);
  expect(project.marks()).toEqual(['one', 'two']);
  expect(existsSync(join(project.root, 'one.txt'))).toBe(true);
  expect(await project.leftovers()).toEqual(nothingLeft);
});

describe('behind a worker that is stalled for longer than `lock_timeout`', () => {
  const config = 'lock_timeout: 1m\n';

  it('another one does the other tasks, says how to continue it, and exits with 3', async () => {
    const project = workerProject({
      agents: {
        implement: `echo "$REPRISE_TASK" >> "$MARKS"; [ "$REPRISE_TASK" = two ] || { ${waits}; }
echo x > "$REPRISE_TASK.txt"; echo "<next>land</next>"`,
      },
      tasks: { one: '# One\n', two: '# Two\n' },
      config,
    });
    const first = project.worker(['--until-idle', '--name', 'first']);
    await until(() => project.marks().includes('one'));
    await stop(project, first);
    stallForLong(project);
    const second = await project.worker(['--until-idle', '--name', 'second']).ended;
    expect([second.code, project.landed()], second.stderr).toEqual([3, ['two']]);
    const how = new RegExp(
      `process ${first.pid} on .* stalled .* ago; continue it: kill -CONT ${first.pid}; end it: kill -9`,
    );
    expect(second.stderr).toMatch(how);
    expect((await project.cli(['status'])).stdout.replace(/\n +/g, ' ')).toMatch(how);
    project.tell('go', '');
    first.kill('SIGCONT');
    expect((await first.ended).code, first.stderr).toBe(0);
    expect(project.landed()).toEqual(['two', 'one']);
    expect(await project.leftovers()).toEqual(nothingLeft);
  });

  it('a landing is given up, and the next worker lands the work without another session', async () => {
    const project = workerProject({
      agents: {
        implement: 'echo "$REPRISE_TASK" >> "$MARKS"; echo x > "$REPRISE_TASK.txt"; echo "<next>land</next>"',
      },
      tasks: { one: '# One\n', two: '# Two\n' },
      config: `${config}workers:\n  verify: 'echo verify >> "$MARKS"; ${waits}'`,
    });
    const first = project.worker(['--until-idle', '--name', 'first']);
    await until(() => project.marks().includes('verify'));
    await stop(project, first);
    stallForLong(project);
    const second = await project.worker(['--max-tasks', '1', '--name', 'second']).ended;
    expect([second.code, project.landed()], second.stderr).toEqual([3, []]);
    expect(second.stderr).toContain(`kill -CONT ${first.pid}`);
    project.tell('go', '');
    first.kill('SIGCONT');
    expect((await first.ended).code, first.stderr).toBe(0);
    expect(project.landed().toSorted()).toEqual(['one', 'two']);
    expect(project.marks().filter(mark => mark !== 'verify')).toEqual(['one', 'two']);
    expect(await project.leftovers()).toEqual(nothingLeft);
  });

  it('`land` gives up with 3, and lands the same work later', async () => {
    const project = workerProject({
      agents: {
        implement: 'echo x > "$REPRISE_TASK.txt"; echo "<next>land</next>"',
        t: 'echo y > y.txt; echo done',
      },
      tasks: { one: '# One\n' },
      files: { 'w.yaml': '{ name: w, steps: [ { id: a, agent: t, prompt: x } ] }' },
      config: `${config}workers:\n  verify: 'echo verify >> "$MARKS"; ${waits}'`,
    });
    const { run } = await project.outcome(['run', 'w.yaml']);
    const worker = project.worker(['--until-idle']);
    await until(() => project.marks().includes('verify'));
    await stop(project, worker);
    stallForLong(project);
    const landed = await project.cli(['land', run]);
    expect(landed.code, landed.stderr).toBe(3);
    expect(landed.stderr).toContain('LOCK_STALLED');
    project.tell('go', '');
    worker.kill('SIGCONT');
    expect((await worker.ended).code, worker.stderr).toBe(0);
    expect((await project.cli(['land', run])).code).toBe(0);
    expect(project.git('show', 'main:y.txt')).toBe('y');
  });

  it('a stopped dispatcher does not keep others from dispatching', async () => {
    const project = workerProject({
      agents: {
        implement: 'echo x > "$REPRISE_TASK.txt"; echo "<next>land</next>"',
        dispatch: `if mkdir "$MARKS.first" 2>/dev/null; then echo dispatching >> "$MARKS"; ${waits}; fi
printf '<next>\\nagent: implement\\ntask: one\\n</next>\\n'`,
      },
      tasks: { one: '# One\n' },
      config: `${config}workers: { dispatch: agent }`,
    });
    const first = project.worker(['--until-idle', '--name', 'first']);
    await until(() => project.marks().includes('dispatching'));
    await stop(project, first);
    stallForLong(project);
    const second = await project.worker(['--max-tasks', '1', '--name', 'second']).ended;
    expect([second.code, project.landed()], second.stderr).toEqual([0, ['one']]);
    project.tell('go', '');
    first.kill('SIGCONT');
    await first.ended;
    expect(await project.leftovers()).toEqual(nothingLeft);
  });
});
