import { describe, expect, it } from 'vitest';
import { mostDoubt } from '../../src/cases/explore/contract.ts';
import type { CaseExploration } from '../../src/cases/explore/explore.ts';
import { RepriseError } from '../../src/core/errors.ts';
import { exploredCases, exploreOn, problemOf, withConflicts, withOutsiders } from './cases.ts';

/** So many and not so long: the same orders on every machine. */
const forMs = Number.POSITIVE_INFINITY;
const schedules = { memory: 150, git: 8 };

/** What somebody does behind an effect cannot be done twice, and of conflicts one solution was recorded. */
const isKilled = (title: string): boolean =>
  withOutsiders[title] === undefined && !withConflicts.includes(title);

const onGitTwice = [
  'landing/conflict_among_workers',
  'landing/landing_conflict',
  'landing/two_runs',
  'workers/concurrent_workers',
  'workers/landing_conflict',
  'workers/verify_fails',
  'workers/worker_killed',
];

/** What only git can show is explored there. */
const none: CaseExploration = { worlds: [] };

describe('every case, in many other orders', () => {
  describe.each(['memory', 'git'] as const)('in %s', on => {
    it.each(exploredCases)('%s breaks nothing', async (title, found) => {
      const options = { on, schedules: schedules[on], forMs, crashes: isKilled(title) };
      const result = await exploreOn(found, options).catch((error: unknown) => {
        if (on === 'memory' && error instanceof RepriseError && error.code === 'CANNOT_EXPLORE') return none;
        throw error;
      });
      expect(problemOf(result)).toBeUndefined();
      for (const { inconclusive, schedules: played } of result.worlds)
        if (!withConflicts.includes(title)) expect(inconclusive).toBeLessThanOrEqual(mostDoubt * played);
    });
  });

  it.each(exploredCases.filter(([title]) => onGitTwice.includes(title)))(
    '%s says on git all that it writes, and comes to the same a second time',
    async (_, found) => {
      const result = await exploreOn(found, { schedules: 3, forMs, on: 'git', checkKeys: true, twice: true });
      expect(problemOf(result)).toBeUndefined();
    },
  );
});

it('three workers are seen on git in as many orders as in memory, several at once', async () => {
  const [, found] = exploredCases.find(([title]) => title === 'workers/three_once') ?? [];
  if (!found) throw new Error('no such case');
  const options = { policy: 'dpor', schedules: 1000, forMs } as const;
  const [git] = (await exploreOn(found, { ...options, on: 'git' })).worlds;
  const [memory] = (await exploreOn(found, { ...options, on: 'memory' })).worlds;
  expect(git).toMatchObject({ isComplete: true, classes: memory?.classes, schedules: memory?.schedules });
}, 180_000);
