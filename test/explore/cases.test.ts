import { describe, expect, it } from 'vitest';
import { mostInconclusive } from '../../src/cases/explore/contract.ts';
import type { CaseExploration } from '../../src/cases/explore/explore.ts';
import { RepriseError } from '../../src/core/errors.ts';
import {
  exploredCases,
  exploreOn,
  problemOf,
  withConflicts,
  withOutsiders,
} from '../cases/explored-cases.ts';
import { rounds } from '../support/rounds.ts';

/** No time limit: every machine plays the same number of schedules. */
const forMs = Number.POSITIVE_INFINITY;
const schedules = { memory: rounds(150), git: rounds(8) };

/**
 * Whether to inject crashes. Not where a script acts as an outside process, which cannot be repeated, nor in cases with a
 * conflict, whose resolution was recorded for one order.
 */
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

/** Result for a case that cannot be explored in memory. */
const none: CaseExploration = { worlds: [] };

describe('every case, in many schedules', () => {
  describe.each(['memory', 'git'] as const)('in %s', on => {
    it.each(exploredCases)('%s breaks no rule', async (title, found) => {
      const options = { on, schedules: schedules[on], forMs, crashes: isKilled(title) };
      const result = await exploreOn(found, options).catch((error: unknown) => {
        if (on === 'memory' && error instanceof RepriseError && error.code === 'CANNOT_EXPLORE') return none;
        throw error;
      });
      expect(problemOf(result)).toBeUndefined();
      for (const { inconclusive, schedules: played } of result.worlds)
        if (!withConflicts.includes(title))
          expect(inconclusive).toBeLessThanOrEqual(mostInconclusive * played);
    });
  });

  it.each(exploredCases.filter(([title]) => onGitTwice.includes(title)))(
    '%s declares all its writes on git, and is deterministic',
    async (_, found) => {
      const result = await exploreOn(found, { schedules: 3, forMs, on: 'git', checkKeys: true, twice: true });
      expect(problemOf(result)).toBeUndefined();
    },
  );
});

it('three workers have as many schedules on git, played in parallel, as in memory', async () => {
  const [, found] = exploredCases.find(([title]) => title === 'workers/three_once') ?? [];
  if (!found) throw new Error('no such case');
  const options = { policy: 'dpor', schedules: 1000, forMs } as const;
  const [git] = (await exploreOn(found, { ...options, on: 'git' })).worlds;
  const [memory] = (await exploreOn(found, { ...options, on: 'memory' })).worlds;
  expect(git).toMatchObject({ isComplete: true, classes: memory?.classes, schedules: memory?.schedules });
});
