import { expect, it } from 'vitest';
import type { Clock } from '../../core/time.ts';
import { recordingClock, replayClock } from './clock.ts';

/** A clock that stands still; whoever waits for it waits for ever. */
const still: Clock = {
  now: () => 1000,
  endOfTurn: async () => {},
  waitUntil: (_, signal) =>
    new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
    ),
};

const never = new AbortController().signal;

it('a clock that is set forward wakes those whose time has come, and nobody else', async () => {
  const clock = recordingClock(still);
  const woken: string[] = [];
  const soon = clock.waitUntil(2000, never).then(() => woken.push('soon'));
  void clock.waitUntil(9000, never).then(() => woken.push('late'));
  clock.advance(1500);
  await soon;
  expect(woken).toEqual(['soon']);
  expect(clock.now()).toBe(2500);
});

it('whoever waits is let go when it is told to stop', async () => {
  const clock = recordingClock(still);
  const stop = new AbortController();
  const waiting = clock.waitUntil(2000, stop.signal);
  stop.abort(new Error('stopped'));
  await expect(waiting).rejects.toThrow('stopped');
});

it('on replay the clock shows what the tape said last, and never goes back', () => {
  const { now, tracer } = replayClock(5);
  const tell = (value: number) =>
    tracer.settled(
      {
        lane: { name: 'run' },
        effect: { name: 'clock.now', span: 'short', perform: () => 0 },
        args: undefined,
        keys: {},
      },
      { n: 0, i: 0, phase: 'short' },
      { kind: 'ok', value },
    );
  expect(now()).toBe(5);
  tell(20);
  tell(10);
  expect(now()).toBe(20);
});
