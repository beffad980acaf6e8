import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openSqliteStore } from '../../src/store/sqlite/store.ts';
import { until } from '../e2e/run-inline.ts';
import { nothingLeft, type WorkerProject, workerProject } from '../e2e/worker-project.ts';
import { stateOf } from '../support/state.ts';

/** Sets the lease of every run to a time that is long past, as a suspend or a jump of the clock does. */
async function expireLeases({ root }: WorkerProject): Promise<void> {
  const store = await openSqliteStore({ file: join(root, stateOf(root), 'reprise.db') });
  for (const { runId, owner } of await store.list())
    if (owner) await store.renew(runId, owner, '2000-01-01T00:00:00.000Z');
  await store.close();
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
  first.kill('SIGSTOP');
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
