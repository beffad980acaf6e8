import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { abandonIncarnation, readmitIncarnation, thisProcess } from '../../../process/table.ts';
import { slotsOf, takeSlot } from './slots.ts';

let stateDir = '';
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), 'reprise-slots-'));
  onTestFinished(() => rmSync(stateDir, { recursive: true }));
});

const request = (incarnation: string, overrides: Partial<Parameters<typeof takeSlot>[0]> = {}) => ({
  stateDir,
  agent: 'coder/../x',
  places: 2,
  owner: { incarnation, ...thisProcess() },
  marker: { REPRISE_INCARNATION: incarnation },
  signal: new AbortController().signal,
  onWait: () => {},
  ...overrides,
});

/** Resolves `waits` when a request has to wait. */
function waiting() {
  let onWait = () => {};
  const waits = new Promise<void>(resolve => {
    onWait = resolve;
  });
  return { onWait, waits };
}

test('requests get all slots, and the next request gets the first released one', async () => {
  const first = await takeSlot(request('a'));
  await takeSlot(request('b'));
  const { onWait, waits } = waiting();
  const third = takeSlot(request('c', { onWait }));
  await waits;
  first.release();
  await third;
});

test('a waiting request can be aborted', async () => {
  await takeSlot(request('a', { places: 1 }));
  const stop = new AbortController();
  const { onWait, waits } = waiting();
  const second = takeSlot(request('b', { places: 1, onWait, signal: stop.signal }));
  await waits;
  stop.abort(new Error('enough'));
  await expect(second).rejects.toThrow('enough');
});

test('the slot of a holder that died is free, once its session was ended', async () => {
  const marker = { REPRISE_INCARNATION: `left-${stateDir}` };
  await takeSlot(request('left', { places: 1, marker }));
  const session = spawn('sleep', ['1000'], { env: { ...process.env, ...marker }, detached: true });
  const ended = once(session, 'exit');
  abandonIncarnation('left');
  onTestFinished(() => readmitIncarnation('left'));
  await takeSlot(request('b', { places: 1 }));
  expect(await ended).toEqual([null, 'SIGTERM']);
});

test('releasing a slot twice does not take it from its new holder', async () => {
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

test('reading the state of the slots does not change it', async () => {
  expect(slotsOf(stateDir, 'coder/../x')).toEqual([]);
  const first = await takeSlot(request('a'));
  await takeSlot(request('b'));
  first.release();
  const seen = slotsOf(stateDir, 'coder/../x');
  expect(seen).toMatchObject([
    { slot: 1, lock: { kind: 'free', token: 1 } },
    { slot: 2, lock: { kind: 'held', owner: { incarnation: 'b' } } },
  ]);
  expect(slotsOf(stateDir, 'coder/../x')).toMatchObject(
    seen.map(({ slot, lock: { kind, token } }) => ({ slot, lock: { kind, token } })),
  );
});
