import { describe, expect, it } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';
import { testContext } from '../../src/cli/test-commands.ts';
import { opensLanes } from '../../src/testing/command-effect.ts';
import { exploreCase } from '../../src/testing/explore/explore.ts';
import { findCases } from '../../src/testing/manifest/find.ts';
import { readCase } from '../../src/testing/manifest/read-case.ts';
import { caseTitle } from '../../src/testing/summary.ts';

const context = testContext({ env: process.env, cwd: process.cwd() }, runProgram);
const { cases } = findCases({ names: [], cwd: process.cwd() });
const explored = cases.filter(found => {
  const { steps, form } = readCase(found);
  return form !== 'worker_test' && steps.some(({ command }) => opensLanes(command));
});

const small = {
  policy: 'auto',
  forMs: Number.POSITIVE_INFINITY,
  seed: 1,
  crashes: false,
  faults: [],
} as const;

describe('every case with lanes, in a few other orders', () => {
  it('is explored', () => {
    expect(explored.length).toBeGreaterThan(15);
  });

  it.each(explored.map(found => [caseTitle(found), found] as const))(
    '%s breaks nothing',
    async (_, found) => {
      const explore = (on: 'memory' | 'git', schedules: number) =>
        exploreCase(found, { ...small, schedules, on }, context).catch(
          (error: { readonly code?: string }) => {
            if (error.code === 'CANNOT_EXPLORE') return undefined;
            throw error;
          },
        );
      const result = (await explore('memory', 8)) ?? (await explore('git', 1));
      // Of sessions that were interrupted nobody knows how they would have gone on.
      if (!result) return expect(found.group).toBe('endings');
      expect(result.drift).toBeUndefined();
      expect(result.failure).toBeUndefined();
      expect(result.worlds[0]?.schedules).toBeGreaterThan(0);
    },
    60_000,
  );
});
