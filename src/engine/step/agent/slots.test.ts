import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../effects/system.ts';
import { thisProcess } from '../../../process/table.ts';
import { placesOf, takeSlot } from './slots.ts';

let stateDir = '';
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), 'reprise-slots-'));
  onTestFinished(() => rmSync(stateDir, { recursive: true }));
});

const request = (incarnation: string, given: Partial<Parameters<typeof takeSlot>[0]> = {}) => ({
  stateDir,
  agent: 'coder/../x',
  places: 2,
  owner: { incarnation, ...thisProcess() },
  clock: systemClock,
  signal: new AbortController().signal,
  onWait: () => {},
  ...given,
});

/** Resolves when somebody has to wait. */
function waiting() {
  let onWait = () => {};
  const waits = new Promise<void>(resolve => {
    onWait = resolve;
  });
  return { onWait, waits };
}

test('as many as there are places are let in, and the next one when a place is given back', async () => {
  const first = await takeSlot(request('a'));
  await takeSlot(request('b'));
  const { onWait, waits } = waiting();
  const third = takeSlot(request('c', { onWait }));
  await waits;
  first.release();
  await third;
});

test('who waits can be told to stop', async () => {
  await takeSlot(request('a', { places: 1 }));
  const stop = new AbortController();
  const { onWait, waits } = waiting();
  const second = takeSlot(request('b', { places: 1, onWait, signal: stop.signal }));
  await waits;
  stop.abort(new Error('enough'));
  await expect(second).rejects.toThrow('enough');
});

test('the place of a process that is gone is free', async () => {
  const gone = spawnSync('true');
  await takeSlot(
    request('a', {
      places: 1,
      owner: { incarnation: 'a', ...thisProcess(), pid: gone.pid, processStart: '1' },
    }),
  );
  await takeSlot(request('b', { places: 1 }));
});

test('the place of a process on another machine is not', async () => {
  const owner = { incarnation: 'a', ...thisProcess(), host: 'elsewhere', pid: 1, processStart: '1' };
  await takeSlot(request('a', { places: 1, owner }));
  const { onWait, waits } = waiting();
  const stop = new AbortController();
  const second = takeSlot(request('b', { places: 1, onWait, signal: stop.signal }));
  await waits;
  stop.abort();
  await expect(second).rejects.toThrow();
});

test('giving a place back twice takes it from nobody', async () => {
  const first = await takeSlot(request('a', { places: 1 }));
  first.release();
  await takeSlot(request('b', { places: 1 }));
  first.release();
  const { onWait, waits } = waiting();
  const stop = new AbortController();
  const third = takeSlot(request('c', { places: 1, onWait, signal: stop.signal }));
  await waits;
  stop.abort();
  await expect(third).rejects.toThrow();
});

test('anybody can see how the places stand, without changing that', async () => {
  expect(placesOf(stateDir, 'coder/../x')).toEqual([]);
  const first = await takeSlot(request('a'));
  await takeSlot(request('b'));
  first.release();
  const seen = placesOf(stateDir, 'coder/../x');
  expect(seen).toMatchObject([
    { place: 1, lock: { kind: 'free', token: 1 } },
    { place: 2, lock: { kind: 'held', owner: { incarnation: 'b' } } },
  ]);
  expect(placesOf(stateDir, 'coder/../x')).toEqual(seen);
});
