import { describe, expect, it } from 'vitest';
import { RepriseError } from '../../src/core/errors.ts';
import {
  allCases,
  exploredCases,
  exploreOn,
  problemOf,
  unexplored,
  withConflicts,
  withOutsiders,
} from './explored-cases.ts';

const ordersOf = (steps: number): number => (steps < 2 ? 1 : steps * ordersOf(steps - 1));

const forMs = Number.POSITIVE_INFINITY;

describe('every case, in a few schedules', () => {
  it.each(allCases.filter(([title]) => unexplored[title] !== undefined))(
    '%s is refused with the reason why it cannot be explored',
    async (title, found) => {
      await expect(exploreOn(found, { schedules: 1, forMs })).rejects.toThrow(unexplored[title]);
    },
  );

  it.each(exploredCases)(
    '%s breaks no rule, and declares all its writes',
    async (title, found) => {
      const checkKeys = withOutsiders[title] === undefined;
      const explore = (on: 'memory' | 'git', schedules: number) =>
        exploreOn(found, { schedules, forMs, on, checkKeys });
      const result = await explore('memory', 6).catch((error: unknown) => {
        if (error instanceof RepriseError && error.code === 'CANNOT_EXPLORE') return explore('git', 1);
        throw error;
      });
      expect(problemOf(result)).toBeUndefined();
      const [world] = result.worlds;
      expect(world?.schedules).toBeGreaterThan(0);
      if (!withConflicts.includes(title)) expect(world?.inconclusive).toBe(0);
    },
    60_000,
  );

  it.each([
    ['workers/two_once', 7, 'memory'],
    ['workers/two_once', 7, 'git'],
    ['workers/three_once', 138, 'memory'],
  ] as const)(
    '%s is complete after %i different schedules, in %s',
    async (title, classes, on) => {
      const [, found] = exploredCases.find(([each]) => each === title) ?? [];
      if (!found) throw new Error('no such case');
      const result = await exploreOn(found, { policy: 'dpor', schedules: 1000, forMs, on });
      expect(problemOf(result)).toBeUndefined();
      const [world] = result.worlds;
      expect(world).toMatchObject({ isComplete: true, inconclusive: 0 });
      const steps = world?.alike[0]?.length ?? 0;
      // Sequential schedules are played in every order, even for symmetric commands.
      expect(world?.classes).toBe(classes + ordersOf(steps) - 1);
    },
    60_000,
  );

  it('names the effect whose script moves the branch', async () => {
    const [, found] = exploredCases.find(([title]) => title === 'landing/lost_race') ?? [];
    if (!found) throw new Error('no such case');
    const { failure } = await exploreOn(found, { schedules: 1, forMs, on: 'git', checkKeys: true });
    expect(failure).toMatchObject({
      what: 'undeclared write of land.verify',
      message: expect.stringContaining('changed HEAD (key ref:HEAD)'),
    });
  });
});
