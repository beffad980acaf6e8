import { expect, it } from 'vitest';
import type { Clock } from '../../core/time.ts';
import { recordingClock, replayClock } from './clock.ts';

/** A clock that does not move, so that waiting on it never ends. */
const still: Clock = {
  now: () => 1000,
  endOfTurn: async () => {},
  waitUntil: (_, signal) =>
    new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
    ),
};

const never = new AbortController().signal;

it('wakes only those waits that are due when the clock is advanced', async () => {
  const clock = recordingClock(still);
  const woken: string[] = [];
  const soon = clock.waitUntil(2000, never).then(() => woken.push('soon'));
  void clock.waitUntil(9000, never).then(() => woken.push('late'));
  clock.advance(1500);
  await soon;
  expect(woken).toEqual(['soon']);
  expect(clock.now()).toBe(2500);
});

it('ends a wait when it is aborted', async () => {
  const clock = recordingClock(still);
  const stop = new AbortController();
  const waiting = clock.waitUntil(2000, stop.signal);
  stop.abort(new Error('stopped'));
  await expect(waiting).rejects.toThrow('stopped');
});

it('shows the last time on the tape during a replay, and never goes back', () => {
  const { now, tracer } = replayClock(5);
  const settle = (value: number) =>
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
  settle(20);
  settle(10);
  expect(now()).toBe(20);
});
