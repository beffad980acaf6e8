import { expect, test, vi } from 'vitest';
import { processTable, thisProcess } from './table.ts';
import { labPerTest } from './test-support.ts';
import { findTree, markedWith } from './tree.ts';

const lab = labPerTest();
const pids = (entries: readonly { readonly pid: number }[]) => entries.map(entry => entry.pid);
const patient = { graceMs: 60_000 };

test('a tree never contains this process, its ancestors or pid 1', async () => {
  const child = lab().sh('echo ready; exec sleep 1000');
  await child.lines.after('ready');
  const parent = processTable.one(process.ppid);
  const init = processTable.one(1);
  const roots = [thisProcess(), ...(parent ? [parent] : []), ...(init ? [init] : [])];
  expect(findTree({ roots })).toEqual([]);
  await child.stop(patient);
});

test('a root whose pid was reused is skipped, with its group', async () => {
  const child = lab().sh('echo ready; exec sleep 1000');
  await child.lines.after('ready');
  const pid = child.identity?.pid ?? 0;
  expect(findTree({ roots: [{ pid, processStart: 'long ago' }], groups: [pid] })).toEqual([]);
  expect(pids(findTree({ roots: [], groups: [pid] }))).toEqual([pid]);
  await child.stop(patient);
});

test('an orphaned process in another session and group is found by its environment', async () => {
  const child = lab().sh(
    'sh -c "setsid sh -c \'echo far \\$\\$; exec sleep 1000\' &"; echo near; exec sleep 1000',
  );
  const far = Number(await child.lines.after('far '));
  const near = child.identity?.pid ?? 0;
  await child.lines.after('near');
  expect(pids(findTree({ roots: rootsOf(child) }))).toEqual([near]);
  expect(pids(markedWith(lab().marker)).sort()).toEqual([near, far].sort());
  await child.stop(patient);
});

test('a child in its own session is found through its parent', async () => {
  const child = lab().sh("env -i setsid sh -c 'echo apart $$; exec sleep 1000' & wait");
  const apart = Number(await child.lines.after('apart '));
  expect(pids(findTree({ roots: rootsOf(child) }))).toEqual([child.identity?.pid, apart]);
  expect(pids(markedWith(lab().marker))).toContain(apart);
  await child.stop(patient);
});

test('a child whose parent has ended is found through its group', async () => {
  const child = lab().sh('sh -c "env -i sleep 1000 & echo member \\$!; echo shell \\$\\$"; exec sleep 1000');
  const member = Number(await child.lines.after('member '));
  const shell = Number(await child.lines.after('shell '));
  while (processTable.one(shell)) await new Promise(setImmediate);
  expect(pids(findTree({ roots: rootsOf(child) }))).toEqual([child.identity?.pid, member]);
  await child.stop(patient);
});

const rootsOf = ({ identity }: ReturnType<ReturnType<typeof lab>['sh']>) => (identity ? [identity] : []);

test('an empty marker matches no process', () => {
  expect(markedWith({})).toEqual([]);
});

test('processes older than all possible owners of a marker are not checked for it', async () => {
  const old = lab().sh('echo ready; exec sleep 1000');
  await old.lines.after('ready');
  const began = old.identity?.processStart;
  let child = lab().sh(
    'sh -c "setsid sh -c \'echo far \\$\\$; exec sleep 1000\' &"; echo near; exec sleep 1000',
  );
  // Start times have a resolution of a hundredth of a second.
  while (child.identity?.processStart === began) {
    await child.stop({ graceMs: 0 });
    child = lab().sh(
      'sh -c "setsid sh -c \'echo far \\$\\$; exec sleep 1000\' &"; echo near; exec sleep 1000',
    );
  }
  const far = Number(await child.lines.after('far '));
  await child.lines.after('near');
  const near = child.identity?.pid ?? 0;
  // A process has no environment for a moment while it executes another program.
  await vi.waitFor(() => {
    const found = pids(findTree({ roots: [], marked: lab().marker, markedFrom: rootsOf(child) }));
    expect(found.toSorted()).toEqual([near, far].toSorted());
  }, 50_000);
  await Promise.all([child.stop(patient), old.stop(patient)]);
});
