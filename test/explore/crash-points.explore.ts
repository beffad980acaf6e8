import { describe, expect, it } from 'vitest';
import { crashAtEvery } from './crash-points.ts';

describe('a crash at every moment, and a start in its place', () => {
  it.each(['workers/concurrent_workers', 'workers/landing_conflict', 'landing/landing_conflict'])(
    'comes to the same: %s',
    async name => {
      const { failure, crashPoints } = await crashAtEvery(name, { on: 'memory' });
      expect(failure).toBeUndefined();
      expect(crashPoints?.of).toBeGreaterThan(300);
      expect(crashPoints).toMatchObject({ tried: crashPoints?.of, inconclusive: 0, otherEnds: 0 });
    },
  );

  it.each(['workers/concurrent_workers', 'workers/landing_conflict', 'landing/landing_conflict'])(
    'comes to the same on git: %s',
    async name => {
      const { failure, crashPoints } = await crashAtEvery(name, { on: 'git', most: 20 });
      expect(failure).toBeUndefined();
      expect(crashPoints?.tried).toBeGreaterThan(10);
      expect(crashPoints).toMatchObject({ inconclusive: 0, otherEnds: 0 });
    },
  );
});
