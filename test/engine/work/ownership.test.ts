import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { thisProcess } from '../../../src/process/table.ts';
import { workLab } from './support.ts';

const at = '2026-01-01T00:00:00.000Z';

/** A former owner whose successor has left uncommitted work in the workspace. */
async function successorAtWork() {
  const lab = await workLab();
  const { runId } = lab;
  const lease = lab.lease();
  const path = join(lab.root, '.reprise', 'workspaces', 'fix');
  const folder = { path, branch: 'reprise/fix', base: lab.git.git('rev-parse', 'HEAD') };
  const unit = { step: 'fix', attempt: 1 };
  await lab.run(() => lab.effects.createWorkspace({ ...folder, runId, lease, unit }));
  const owner = { ...thisProcess(), incarnation: 'successor' };
  await lab.store.acquire({ runId, owner, now: at, expiresAt: at, provablyDead: 'tester' });
  writeFileSync(join(path, 'work.txt'), 'of the successor');
  return { lab, folder, order: { ...folder, runId, lease, unit }, fence: { runId, lease } };
}

type Successor = Awaited<ReturnType<typeof successorAtWork>>;

const shell = { script: 'rm -f work.txt', shell: 'bash', env: {} } as const;

test.each<readonly [string, (of: Successor) => Promise<unknown>]>([
  ['create', ({ lab, order }) => lab.effects.createWorkspace(order)],
  ['reset', ({ lab, order }) => lab.effects.resetWorkspace(order)],
  [
    'commit',
    ({ lab, folder, fence }) => lab.effects.saveWork({ ...folder, message: 'unfinished\n', at, fence }),
  ],
  ['mark', ({ lab, folder, fence }) => lab.effects.markSetUp({ path: folder.path, done: true, fence })],
  [
    'run a script in',
    ({ lab, order }) => lab.effects.shell({ ...order, command: shell, folder: order.path, env: {} }),
  ],
])('a former owner that wakes up cannot %s the workspace of its successor', async (_, act) => {
  const successor = await successorAtWork();
  const { lab, folder } = successor;
  await expect(lab.run(() => act(successor))).rejects.toMatchObject({ code: 'FENCED' });
  expect(readFileSync(join(folder.path, 'work.txt'), 'utf8')).toBe('of the successor');
  expect(lab.git.git('log', '--format=%s', folder.branch)).toBe('Begin');
});
