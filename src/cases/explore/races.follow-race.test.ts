import { describe, expect, it } from 'vitest';
import type { Move, Point } from '../../effects/explore/schedule.ts';
import { followRace } from './races.ts';

const turn = (text: string) => {
  const [lane = '', op = ''] = text.split(' ');
  return { lane, op };
};
const move = (text: string): Move => ({ ...turn(text), keys: {} });
const point = (n: number, enabled: readonly string[], waiting: readonly string[] = []): Point => ({
  n,
  enabled: enabled.map(move),
  waiting: waiting.map(move),
  last: undefined,
});

describe('replaying a saved schedule', () => {
  it('follows its moves', () => {
    const { policy, missing } = followRace(['a look', 'b look', 'b take'].map(turn), true);
    expect(policy.choose(point(0, ['a look', 'b look']))).toBe('a');
    expect(policy.choose(point(1, ['a take', 'b look']))).toBe('b');
    expect(policy.choose(point(2, ['a take', 'b take']))).toBe('b');
    expect(missing).toEqual([]);
    expect(policy.isCalm).toBe(true);
  });

  it('skips the moves of a lane that is blocked now', () => {
    const { policy, missing } = followRace(['a look', 'b look', 'a take'].map(turn), false);
    expect(policy.choose(point(0, ['a lock', 'b lock']))).toBe('a');
    expect(policy.choose(point(1, ['a look'], ['b lock']))).toBe('a');
    expect(policy.choose(point(2, ['a take'], ['b lock']))).toBe('a');
    expect(missing).toEqual([]);
  });

  it('reports moves that no lane makes any more', () => {
    const { policy, missing } = followRace(['a look', 'a check', 'a take', 'c look'].map(turn), false);
    expect(policy.choose(point(0, ['a look', 'b look']))).toBe('a');
    expect(policy.choose(point(1, ['a take', 'b look']))).toBe('a');
    expect(policy.choose(point(2, ['b look']))).toBe('b');
    expect(missing.map(({ lane, op }) => `${lane} ${op}`)).toEqual(['a check', 'c look']);
  });

  it('does not report moves after the last switch between commands', () => {
    const { policy, missing } = followRace(['a look', 'b take', 'a go', 'a end'].map(turn), false);
    expect(policy.choose(point(0, ['a look', 'b take']))).toBe('a');
    expect(policy.choose(point(1, ['a go', 'b take']))).toBe('b');
    expect(policy.choose(point(2, ['a go']))).toBe('a');
    expect(policy.choose(point(3, ['a look']))).toBe('a');
    expect(missing).toEqual([]);
  });
});
