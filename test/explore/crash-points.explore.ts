import { describe, expect, it } from 'vitest';
import { brokenIn, crashAtEvery, judgedIn } from './crash-points.ts';

describe('a crash at every moment, and a start in its place', () => {
  it('comes to the same: two workers with a task each', async () => {
    const points = await crashAtEvery('workers/concurrent_workers', { on: 'memory', each: 1 });
    expect(points.crashed.length).toBeGreaterThan(400);
    expect(brokenIn(points)).toEqual([]);
    expect(judgedIn(points)).toBe(1);
  });

  it('comes to the same wherever the solution fits that was recorded: two workers with a conflict', async () => {
    const points = await crashAtEvery('workers/landing_conflict', { on: 'memory', each: 1 });
    expect(points.crashed.length).toBeGreaterThan(400);
    expect(points.calm.verdict).toEqual({ kind: 'passed' });
    expect(brokenIn(points)).toEqual([]);
    expect(judgedIn(points)).toBeGreaterThan(0.75);
  });

  it.each(['workers/concurrent_workers', 'workers/landing_conflict'])(
    'comes to the same on git: %s',
    async name => {
      const points = await crashAtEvery(name, { on: 'git', each: 31 });
      expect(points.calm.verdict).toEqual({ kind: 'passed' });
      expect(brokenIn(points)).toEqual([]);
    },
  );
});
