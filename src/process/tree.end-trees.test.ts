import { describe, expect, test } from 'vitest';
import { isSameProcess, processStart, processTable } from './table.ts';
import { labPerTest, readyWithSleeper } from './test-support.ts';
import { endTrees, markedWith } from './tree.ts';

const lab = labPerTest();
const patientMs = 60_000;

test('returns empty lists if there are no processes to stop', async () => {
  expect(await endTrees({ roots: [], marked: lab().marker, graceMs: patientMs })).toEqual({
    ended: [],
    survived: [],
  });
});

test('stops a whole tree, and lets each process clean up', async () => {
  const child = lab().sh(`
    trap 'echo cleaned outer; exit 0' TERM
    sh -c 'trap "echo cleaned inner; exit 0" TERM; ${readyWithSleeper}' &
    while :; do wait; done`);
  await child.lines.after('ready');
  const { ended, survived } = await endTrees({ roots: rootsOf(child), graceMs: patientMs });
  await child.ended;
  expect(child.lines.all).toEqual(expect.arrayContaining(['cleaned outer', 'cleaned inner']));
  expect(new Set(ended.map(each => each.by))).toEqual(new Set(['SIGTERM']));
  expect(ended.length).toBeGreaterThanOrEqual(2);
  expect(survived).toEqual([]);
});

test('kills a process that ignores SIGTERM after the grace period', async () => {
  const child = lab().sh("trap '' TERM; echo ready; while :; do sleep 1000; done");
  await child.lines.after('ready');
  const { ended } = await endTrees({ roots: rootsOf(child), graceMs: 50 });
  expect(ended).toContainEqual({ ...child.identity, by: 'SIGKILL' });
  expect(await child.ended).toMatchObject({ kind: 'signalled', signal: 'SIGKILL' });
});

test('continues a suspended process, so it can clean up', async () => {
  const child = lab().sh(
    "trap 'echo cleaned; exit 0' TERM; echo ready; kill -STOP $$; while :; do sleep 1000; done",
  );
  const pid = child.identity?.pid ?? 0;
  while (processTable.one(pid)?.state !== 'stopped') await new Promise(setImmediate);
  await child.lines.after('ready');
  await endTrees({ roots: rootsOf(child), graceMs: patientMs });
  expect(await child.ended).toMatchObject({ kind: 'exited', exitCode: 0, tail: 'ready\ncleaned\n' });
});

test('stops a process that another one starts while it cleans up', async () => {
  const child = lab().sh(`
    trap 'setsid sh -c "trap \\"\\" TERM; echo late \\$\\$; exec sleep 1000" & exit 0' TERM
    ${readyWithSleeper}`);
  await child.lines.after('ready');
  await endTrees({ roots: rootsOf(child), marked: lab().marker, graceMs: 500 });
  expect(markedWith(lab().marker)).toEqual([]);
});

test('stops a process that was forked while its parent ended, unseen by a search', async () => {
  const child = lab().sh("trap '' TERM; echo ready; while :; do sleep 1000; done");
  await child.lines.after('ready');
  let searches = 0;
  const all = () => (++searches === 2 ? [] : processTable.all());
  const table = Object.assign(Object.create(processTable), { all });
  const { ended } = await endTrees({ roots: rootsOf(child), graceMs: 50 }, table);
  expect(ended).toContainEqual({ ...child.identity, by: 'SIGKILL' });
  await child.ended;
});

test('finds orphaned processes by the marker alone', async () => {
  const child = lab().sh('sleep 1000 & setsid sleep 1000 & echo orphan $!', { settleMs: 0 });
  const pid = Number(await child.lines.after('orphan '));
  const orphan = { pid, processStart: processStart(pid) ?? '' };
  await child.ended;
  expect(isSameProcess(orphan)).toBe(true);
  const { ended } = await endTrees({ roots: [], marked: lab().marker, graceMs: patientMs });
  expect(ended).toContainEqual({ ...orphan, by: 'SIGTERM' });
  expect(ended).toHaveLength(2);
});

test('does not stop a process that has the pid of a root and another start time', async () => {
  const child = lab().sh('echo ready; exec sleep 1000');
  await child.lines.after('ready');
  const [root] = rootsOf(child);
  const reused = { pid: root?.pid ?? 0, processStart: 'long ago', ownGroup: true };
  expect(await endTrees({ roots: [reused], graceMs: 0 })).toEqual({ ended: [], survived: [] });
  expect(root && isSameProcess(root)).toBe(true);
  await child.stop({ graceMs: patientMs });
});

describe('the process group of a root that has ended', () => {
  const leaveMember = async () => {
    const child = lab().sh('env -i sleep 1000 & echo member $!', { settleMs: 0 });
    const pid = Number(await child.lines.after('member '));
    await child.ended;
    return { roots: rootsOf(child), member: { pid, processStart: processStart(pid) ?? '' } };
  };

  test('is stopped if the root was a child of this process', async () => {
    const { roots, member } = await leaveMember();
    const { ended } = await endTrees({
      roots: roots.map(root => ({ ...root, ownGroup: true })),
      graceMs: patientMs,
    });
    expect(ended).toEqual([{ ...member, by: 'SIGTERM' }]);
  });

  test('is not stopped otherwise, because its id may have been reused', async () => {
    const { roots, member } = await leaveMember();
    expect(await endTrees({ roots, graceMs: 0 })).toEqual({ ended: [], survived: [] });
    expect(isSameProcess(member)).toBe(true);
    await endTrees({ roots: [member], graceMs: 0 });
  });
});

const rootsOf = ({ identity }: ReturnType<ReturnType<typeof lab>['sh']>) => (identity ? [identity] : []);
