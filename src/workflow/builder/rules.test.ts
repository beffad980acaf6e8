import { describe, expect, test } from 'vitest';
import { OptionReader, type Retry, type Timeout } from './rules.ts';

const retryOf = (retry: Retry) => new OptionReader('step', 'x').retry(retry);

function messages(read: (reader: OptionReader) => unknown): string[] {
  const reader = new OptionReader('step', 'x');
  read(reader);
  return reader.problems.map(({ message }) => message);
}

describe('a retry rule', () => {
  test('doubles from a second to five minutes by default', () => {
    const backoff = { initialMs: 1000, factor: 2, maxMs: 300_000 };
    expect(retryOf(3)).toEqual({ attempts: 3, backoff });
    expect(retryOf({ attempts: 3 })).toEqual({ attempts: 3, backoff });
  });

  test('has a fixed delay if the backoff is a duration', () => {
    expect(retryOf({ attempts: 2, backoff: '10s' })?.backoff).toEqual({
      initialMs: 10_000,
      factor: 1,
      maxMs: 10_000,
    });
  });

  test('fills in the defaults of a backoff', () => {
    expect(retryOf({ attempts: 2, backoff: { initial: 5 } })?.backoff).toEqual({
      initialMs: 5,
      factor: 2,
      maxMs: 300_000,
    });
    expect(retryOf({ attempts: 2, backoff: { initial: '1h' } })?.backoff.maxMs).toBe(3_600_000);
    const backoff = { initial: 5, factor: 3, max: '1s' };
    expect(retryOf({ attempts: 2, backoff })?.backoff).toEqual({ initialMs: 5, factor: 3, maxMs: 1000 });
  });

  test('matches errors by code, by class or with a function', () => {
    const named = retryOf({ attempts: 2, on: ['TIMEOUT', 'TypeError'] })?.retries;
    expect(named?.({ code: 'TIMEOUT', message: '' })).toBe(true);
    expect(named?.({ code: 'STEP_FAILED', message: '', name: 'TypeError' })).toBe(true);
    expect(named?.({ code: 'STEP_FAILED', message: '' })).toBe(false);
    const decided = retryOf({ attempts: 2, on: ({ exitCode }) => exitCode === 75 })?.retries;
    expect(decided?.({ code: 'EXIT_NONZERO', message: '', exitCode: 75 })).toBe(true);
    expect(decided?.({ code: 'EXIT_NONZERO', message: '', exitCode: 1 })).toBe(false);
  });

  test.each<[Retry, string]>([
    [0, 'the number of attempts in retry must be a whole number of at least 1, not 0'],
    [1.5, 'the number of attempts in retry must be a whole number of at least 1, not 1.5'],
    [{ attempts: 2, backoff: 'soon' }, 'retry.backoff must be a duration, not "soon"'],
    [{ attempts: 2, backoff: { initial: -1 } }, 'retry.backoff.initial must be a duration, not -1'],
    [
      { attempts: 2, backoff: { initial: 1, factor: 0.5 } },
      'retry.backoff.factor must be at least 1, not 0.5',
    ],
    [
      { attempts: 2, backoff: { initial: '2s', max: '1s' } },
      'retry.backoff.max ("1s") is shorter than initial ("2s")',
    ],
  ])('of %j is rejected', (retry, message) => {
    expect(messages(reader => reader.retry(retry))).toEqual([`step "x": ${message}`]);
  });
});

describe('a timeout', () => {
  test.each<[Timeout, object]>([
    ['30s', { attemptMs: 30_000 }],
    [500, { attemptMs: 500 }],
    [{ step: '1h' }, { stepMs: 3_600_000 }],
    [
      { attempt: '1m', step: '1h' },
      { attemptMs: 60_000, stepMs: 3_600_000 },
    ],
  ])('of %j becomes %j', (timeout, rule) => {
    expect(new OptionReader('step', 'x').timeout(timeout)).toEqual(rule);
  });

  test.each<[Timeout, string]>([
    ['0s', 'timeout must be greater than 0, not "0s"'],
    ['soon', 'timeout must be a duration, not "soon"'],
    [{ step: -5 }, 'timeout must be a duration, not -5'],
  ])('of %j is rejected', (timeout, message) => {
    expect(messages(reader => reader.timeout(timeout))).toEqual([`step "x": ${message}`]);
  });
});
