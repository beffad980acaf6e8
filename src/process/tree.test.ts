import { expect, test } from 'vitest';
import { thisProcess } from './identity.ts';
import { processTable } from './process-table.ts';
import { labPerTest } from './test-support.ts';
import { findTree, markedWith } from './tree.ts';

const lab = labPerTest();
const pids = (entries: readonly { readonly pid: number }[]) => entries.map(entry => entry.pid);
const patient = { graceMs: 60_000 };

test('neither this process, nor its ancestors, nor pid 1 belongs to any tree', async () => {
  const child = lab().sh('echo ready; exec sleep 1000');
  await child.lines.after('ready');
  const parent = processTable.one(process.ppid);
  const init = processTable.one(1);
  const roots = [thisProcess(), ...(parent ? [parent] : []), ...(init ? [init] : [])];
  expect(findTree({ roots })).toEqual([]);
  await child.stop(patient);
});

test('a root whose pid was given to another process is passed over, with its group', async () => {
  const child = lab().sh('echo ready; exec sleep 1000');
  await child.lines.after('ready');
  const pid = child.identity?.pid ?? 0;
  expect(findTree({ roots: [{ pid, processStart: 'long ago' }], groups: [pid] })).toEqual([]);
  expect(pids(findTree({ roots: [], groups: [pid] }))).toEqual([pid]);
  await child.stop(patient);
});

test('a child that left session, group and parents behind is found by its environment', async () => {
  const child = lab().sh(
    'sh -c "setsid sh -c \'echo far \\$\\$; exec sleep 1000\' &"; echo near; exec sleep 1000',
  );
  const far = Number(await child.lines.after('far '));
  const near = child.identity?.pid ?? 0;
  await child.lines.after('near');
  expect(pids(findTree({ roots: child.identity ? [child.identity] : [] }))).toEqual([near]);
  expect(pids(markedWith(lab().marker)).sort()).toEqual([near, far].sort());
  await child.stop(patient);
});

test('what a marked process started is found although its environment was emptied', async () => {
  const child = lab().sh("env -i sh -c 'echo bare $$; exec sleep 1000'; :");
  const bare = Number(await child.lines.after('bare '));
  expect(pids(markedWith(lab().marker))).toContain(bare);
  await child.stop(patient);
});
