import { describe, expect, test } from 'vitest';
import { isLimitText, readReset, resetFromEpoch } from './failures.ts';

const now = Date.parse('2026-06-01T12:00:30Z');

describe('a limit is recognized', () => {
  test.each([
    ["You've hit your limit · resets 3pm (Europe/Berlin)", '2026-06-01T13:00:00.000Z'],
    ['Claude AI usage limit reached|1800000000', '2027-01-15T08:00:00.000Z'],
    ['rate_limit_error: retry after 20s', '2026-06-01T12:00:50.000Z'],
    ['Too many requests. Try again in 1 hour, 5 minutes and 2 seconds.', '2026-06-01T13:05:32.000Z'],
    ['Usage limit: quota exceeded until 2026-06-02T00:00:00Z', '2026-06-02T00:00:00.000Z'],
    ['usage limit reached, resets at 1:30am (UTC)', '2026-06-02T01:30:00.000Z'],
    ['HTTP 429', undefined],
    ['usage limit reached, resets 3pm (Nowhere/Land)', undefined],
  ])('in: %s', (text, resetsAt) => {
    expect(isLimitText(text)).toBe(true);
    expect(readReset(text, now)).toBe(resetsAt);
  });

  test.each(['The file is limited to 10 lines', 'error 500', 'Credit balance is too low'])(
    'but not in: %s',
    text => {
      expect(isLimitText(text)).toBe(false);
    },
  );
});

test.each([
  [1_800_000_000, '2027-01-15T08:00:00.000Z'],
  [1_800_000_000_000, '2027-01-15T08:00:00.000Z'],
  [0, undefined],
  [Number.NaN, undefined],
  [1e20, undefined],
  [undefined, undefined],
])('the epoch %s is the time %s', (epoch, timestamp) => {
  expect(resetFromEpoch(epoch)).toBe(timestamp);
});
