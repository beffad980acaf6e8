import { describe, expect, it } from 'vitest';
import { crashAtEvery } from '../cases/crash-points.ts';
import { exploredCases, exploreOn, problemOf } from '../cases/explored-cases.ts';

describe('a crash at every crash point, followed by a restart', () => {
  it.each(['workers/concurrent_workers', 'workers/landing_conflict', 'landing/landing_conflict'])(
    'does not change the outcome of %s',
    async name => {
      const { failure, crashPoints } = await crashAtEvery(name, { on: 'memory' });
      expect(failure).toBeUndefined();
      expect(crashPoints?.of).toBeGreaterThan(300);
      expect(crashPoints).toMatchObject({ tried: crashPoints?.of, inconclusive: 0, otherEnds: 0 });
    },
  );

  it.each(['workers/concurrent_workers', 'workers/landing_conflict', 'landing/landing_conflict'])(
    'does not change the outcome of %s on git',
    async name => {
      const { failure, crashPoints } = await crashAtEvery(name, { on: 'git', most: 20 });
      expect(failure).toBeUndefined();
      expect(crashPoints?.tried).toBeGreaterThan(10);
      expect(crashPoints).toMatchObject({ inconclusive: 0, otherEnds: 0 });
    },
  );

  it('is not followed by more schedules once most of them are inconclusive', async () => {
    const [, found] = exploredCases.find(([title]) => title === 'workers/landing_conflict') ?? [];
    if (!found) throw new Error('no such case');
    const endless = { schedules: Number.POSITIVE_INFINITY, forMs: Number.POSITIVE_INFINITY };
    const result = await exploreOn(found, { ...endless, on: 'memory', crashes: true, crashPoints: 'first' });
    expect(problemOf(result)).toBeUndefined();
    const [world] = result.worlds;
    expect(world?.givenUp?.schedules).toBe(50);
    expect(world?.crashPoints?.tried).toBe(world?.crashPoints?.of);
    expect(world).toMatchObject({ isComplete: false, endedBy: undefined });
  });
});
