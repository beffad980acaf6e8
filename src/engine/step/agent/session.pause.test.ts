import { expect, test } from 'vitest';
import { toTimestamp } from '../../../core/time.ts';
import { pauseMs } from './session.ts';

const now = Date.parse('2026-01-01T00:00:00Z');
const minute = 60_000;

test('a rate limit pauses the session until it resets', () => {
  expect(pauseMs({ resetsAt: toTimestamp(now + 90 * minute), now, times: 3 })).toBe(90 * minute);
  expect(pauseMs({ resetsAt: toTimestamp(now + minute), now, times: 20 })).toBe(minute);
});

test('a rate limit without a reset time backs off exponentially up to an hour', () => {
  expect([1, 2, 3, 4, 5, 50].map(times => pauseMs({ now, times }) / minute)).toEqual([5, 10, 20, 40, 60, 60]);
  expect(pauseMs({ resetsAt: 'soon', now, times: 1 })).toBe(5 * minute);
});

test('a reset time in the past backs off instead of retrying in a loop', () => {
  const resetsAt = toTimestamp(now - 1);
  expect([1, 2, 3].map(times => pauseMs({ resetsAt, now, times }))).toEqual([1000, 2000, 4000]);
});
