import { PassThrough } from 'node:stream';
import type { ReadStream } from 'node:tty';
import { expect, it } from 'vitest';
import { listenToKeys } from './run-process.ts';

it('reports every key until it is stopped, and restores the terminal mode', () => {
  const modes: boolean[] = [];
  const input = Object.assign(new PassThrough(), { setRawMode: (isRaw: boolean) => void modes.push(isRaw) });
  const heard: string[] = [];
  const stop = listenToKeys(input as unknown as ReadStream, key => heard.push(key));
  input.emit('data', Buffer.from('aq'));
  input.emit('data', '\u0003');
  stop();
  input.emit('data', 'late');
  expect(heard).toEqual(['a', 'q', '\u0003']);
  expect(modes).toEqual([true, false]);
  expect(input.isPaused()).toBe(true);
});
