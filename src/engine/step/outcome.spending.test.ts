import { describe, expect, test } from 'vitest';
import { isBlind, isUsedUp, overspent, remainingAfter } from './outcome.ts';

const used = (inputTokens: number, outputTokens: number, costUsd: number | null) => ({
  inputTokens,
  outputTokens,
  cachedTokens: 0,
  costUsd,
});

describe('a spending limit', () => {
  test('is exceeded by more than the limit, not by exactly the limit', () => {
    expect(overspent({ costUsd: 1 }, used(0, 0, 1))).toBeUndefined();
    expect(overspent({ costUsd: 1 }, used(0, 0, 1.001))).toBe(
      'the agent cost $1.001, but only $1.00 was left',
    );
    expect(overspent({ tokens: 10 }, used(7, 3, null))).toBeUndefined();
    expect(overspent({ tokens: 10 }, used(7, 4, null))).toBe(
      'the agent used 11 tokens, but only 10 were left',
    );
    expect(overspent({}, used(1e9, 1e9, 1e9))).toBeUndefined();
  });

  test('is not exceeded in dollars by an unknown cost', () => {
    expect(overspent({ costUsd: 0.01 }, used(1e9, 0, null))).toBeUndefined();
    expect(isBlind({ costUsd: 0.01 }, used(1e9, 0, null))).toBe(true);
    expect(isBlind({ costUsd: 0.01 }, used(0, 0, null))).toBe(false);
    expect(isBlind({ tokens: 5 }, used(1e9, 0, null))).toBe(false);
  });

  test('shrinks with each session', () => {
    expect(remainingAfter({ costUsd: 2, tokens: 100 }, used(30, 10, 0.5))).toEqual({
      costUsd: 1.5,
      tokens: 60,
    });
    expect(remainingAfter({ costUsd: 2 }, used(30, 10, null))).toEqual({ costUsd: 2 });
    expect(remainingAfter({}, used(30, 10, 1))).toEqual({});
  });

  test('prevents a new session if nothing is left', () => {
    expect([{ costUsd: 0 }, { tokens: -1 }, { costUsd: 1, tokens: 0 }].map(isUsedUp)).toEqual([
      true,
      true,
      true,
    ]);
    expect([{}, { costUsd: 0.001 }, { tokens: 1 }].map(isUsedUp)).toEqual([false, false, false]);
  });
});
