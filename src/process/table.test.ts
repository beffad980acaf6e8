import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { type ProcessTable, procTable, psTable } from './table.ts';
import { labPerTest } from './test-support.ts';
import { findTree } from './tree.ts';

const lab = labPerTest();

const tables: [string, ProcessTable][] = [['ps', psTable]];
if (existsSync('/proc/self/stat')) tables.push(['/proc', procTable]);

describe.each(tables)('the process table by %s', (_name, table) => {
  test('shows a child with its parent, its group and a stable start time', async () => {
    const child = lab().sh('echo ready; read never', { stdin: { text: '' } });
    const sleeper = lab().sh('echo ready; exec sleep 1000');
    await sleeper.lines.after('ready');
    await child.ended;
    const pid = sleeper.identity?.pid ?? 0;
    const entry = table.one(pid);
    expect(entry).toMatchObject({ pid, parent: process.pid, group: pid, state: 'alive' });
    expect(table.all().find(each => each.pid === pid)).toEqual(entry);
    expect(table.one(child.identity?.pid ?? 0)).toBeUndefined();
    await sleeper.stop({ graceMs: 60_000 });
    expect(table.one(pid)).toBeUndefined();
  });

  test('finds only processes whose environment has the whole marker', async () => {
    const { marker, sh } = lab();
    const [one, two] = ['one', 'two'].map(step =>
      sh('echo ready; exec sleep 1000', { marker: { ...marker, REPRISE_STEP: step } }),
    );
    await one?.lines.after('ready');
    await two?.lines.after('ready');
    const marked = (extra: Record<string, string>) =>
      table.marked(table.all(), { ...marker, ...extra }).map(entry => entry.pid);
    await vi.waitFor(() => expect(marked({})).toHaveLength(2), 50_000);
    expect(marked({ REPRISE_STEP: 'two' })).toEqual([two?.identity?.pid]);
    expect(marked({ REPRISE_STEP: 'tw' })).toEqual([]);
    await Promise.all([one?.stop({ graceMs: 60_000 }), two?.stop({ graceMs: 60_000 })]);
  });

  test('never reports a child as older than its parent or itself', async () => {
    const child = lab().sh('sh -c "echo deep \\$\\$; exec sleep 1000"; :');
    const deep = table.one(Number(await child.lines.after('deep ')));
    const root = table.one(child.identity?.pid ?? 0);
    const own = table.one(process.pid);
    if (!deep || !root || !own) throw new Error('all of them must run');
    expect(table.startedBefore(deep, root)).toBe(false);
    expect(table.startedBefore(root, root)).toBe(false);
    expect(table.startedBefore(own, { pid: root.pid, processStart: 'unknown' })).toBe(false);
    await child.stop({ graceMs: 60_000 });
  });

  test('distinguishes a stopped process from a running one', async () => {
    const child = lab().sh('echo ready; kill -STOP $$; echo on; exec sleep 1000');
    await child.lines.after('ready');
    const pid = child.identity?.pid ?? 0;
    while (table.one(pid)?.state !== 'stopped') await new Promise(setImmediate);
    process.kill(pid, 'SIGCONT');
    await child.lines.after('on');
    expect(table.one(pid)?.state).toBe('alive');
    await child.stop({ graceMs: 60_000 });
  });

  test('parses program names with parentheses and spaces', async () => {
    const program = join(lab().folder, 'x) Z 1 1 1');
    writeFileSync(program, '#!/bin/sh\necho ready; while :; do sleep 1000; done', { mode: 0o700 });
    const child = lab().sh('', { argv: [program] });
    await child.lines.after('ready');
    const pid = child.identity?.pid ?? 0;
    expect(table.one(pid)).toMatchObject({ parent: process.pid, group: pid, state: 'alive' });
    await child.stop({ graceMs: 60_000 });
  });

  test('connects a shell with its grandchildren', async () => {
    const child = lab().sh('sh -c "sh -c \'echo deep \\$\\$; exec sleep 1000\'; :"; :');
    const deep = Number(await child.lines.after('deep '));
    const root = table.one(child.identity?.pid ?? 0);
    const tree = findTree({ roots: root ? [root] : [] }, table);
    expect(tree.map(entry => entry.pid)).toEqual([root?.pid, table.one(deep)?.parent, deep]);
    await child.stop({ graceMs: 60_000 });
  });
});

test.runIf(existsSync('/proc/self/stat'))(
  'finds a process in /proc while it executes another program',
  async () => {
    const again = 'exec sh -c "$0" "$0"';
    const child = lab().sh('', { argv: ['sh', '-c', `echo ready; ${again}`, again] });
    await child.lines.after('ready');
    const entry = procTable.one(child.identity?.pid ?? 0);
    for (let look = 0; look < 5000; look++) {
      expect(procTable.marked(entry ? [entry] : [], lab().marker)).toEqual([entry]);
    }
    await child.stop({ graceMs: 60_000 });
  },
);
