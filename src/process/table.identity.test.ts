import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isSameProcess, processStart, thisProcess } from './table.ts';
import { labPerTest } from './test-support.ts';
import { findTree } from './tree.ts';

const lab = labPerTest();

test('this process has a stable identity', () => {
  expect(thisProcess()).toEqual(thisProcess());
  expect(thisProcess()).toMatchObject({ pid: process.pid, processStart: processStart(process.pid) });
  expect(thisProcess().host.startsWith(hostname())).toBe(true);
  expect(isSameProcess(thisProcess())).toBe(true);
});

test('a pid with another start time is another process', () => {
  expect(isSameProcess({ pid: process.pid, processStart: processStart(1) ?? '' })).toBe(false);
});

test('a process that has ended and was reaped has no start time', async () => {
  const child = lab().sh('exit 0');
  await child.ended;
  expect(child.identity).toBeDefined();
  if (child.identity) expect(isSameProcess(child.identity)).toBe(false);
  expect(processStart(child.identity?.pid ?? 0)).toBeUndefined();
});

test('a zombie is not alive', async () => {
  // `tail` inherits a child that it does not know, and never reaps it.
  const parent = lab().sh(
    "mkfifo gate; echo tail > text; sh -c 'read x < gate' & echo child $!; exec tail -f text",
  );
  const pid = Number(await parent.lines.after('child '));
  await parent.lines.after('tail');
  const started = processStart(pid);
  expect(started).toBeDefined();
  await writeFile(join(lab().folder, 'gate'), 'go\n');
  if (started) while (isSameProcess({ pid, processStart: started })) await new Promise(setImmediate);
  expect(processStart(pid)).toBe(started);
  expect(findTree({ roots: [{ pid, processStart: started ?? '' }] })).toEqual([]);
  await parent.stop({ graceMs: 60_000 });
});

test('a child is visible right after its start, even if it ends at once', async () => {
  const child = spawn('true');
  const start = processStart(child.pid ?? 0);
  await once(child, 'close');
  expect(start).toBeDefined();
});
