import { describe, expect, it } from 'vitest';
import { mostDoubt } from '../../src/testing/explore/explore-case.ts';
import { exploredCases, exploreOn, problemOf, withConflicts, withOutsiders } from './cases.ts';

const forMs = 6_000;
const schedules = Number.POSITIVE_INFINITY;

/** What somebody does behind an effect cannot be done twice; a rework that a crash cuts short is not given again. */
const isKilled = (title: string): boolean =>
  withOutsiders[title] === undefined && !withConflicts.includes(title) && title !== 'workers/verify_fails';

describe('every case, in many other orders', () => {
  it.each(exploredCases)('%s breaks nothing', async (title, found) => {
    const result = await exploreOn(found, { schedules, forMs, crashes: isKilled(title) });
    expect(problemOf(result)).toBeUndefined();
    for (const { inconclusive, schedules: played } of result.worlds)
      if (!withConflicts.includes(title)) expect(inconclusive).toBeLessThanOrEqual(mostDoubt * played);
  });

  it.each(exploredCases.filter(([title]) => withOutsiders[title] === undefined))(
    '%s says on git all that it writes, and comes to the same a second time',
    async (_, found) => {
      const result = await exploreOn(found, { schedules: 2, forMs, on: 'git', checkKeys: true, twice: true });
      expect(problemOf(result)).toBeUndefined();
    },
  );
});
