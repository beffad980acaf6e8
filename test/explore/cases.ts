import type { ExploreOptions } from '../../src/cases/explore/contract.ts';
import { type CaseExploration, exploreCase } from '../../src/cases/explore/explore.ts';
import { type FoundCase, findCases } from '../../src/cases/manifest/find.ts';
import { caseTitle } from '../../src/cases/result.ts';
import { testContext } from '../../src/cli/other-commands.ts';
import { runProgram } from '../../src/cli/program.ts';

const context = testContext({ env: process.env, cwd: process.cwd() }, runProgram);

/** The cases of this repository that cannot be explored, and why. */
export const unexplored: Readonly<Record<string, RegExp>> = {
  'composed/served_sessions': /has not been recorded/,
  'workers/worker_sessions': /has not been recorded/,
  'endings/ctrl_c': /was interrupted when it was recorded/,
  'endings/fail_fast': /was interrupted when it was recorded/,
  'endings/timeout': /was interrupted when it was recorded/,
  'workers/init_fresh': /has no step whose order could be another one/,
  'workers/status_no_workers': /has no step whose order could be another one/,
};

/** Cases with scripts that stand for somebody outside: what they do is in the keys of no effect. */
export const withOutsiders: Readonly<Record<string, string>> = {
  'endings/foreign_event': 'shell.run',
  'endings/retry': 'shell.run',
  'landing/lost_race': 'land.verify',
  'landing/lost_race_elsewhere': 'land.verify',
  'workers/claim_taken_back': 'land.verify',
  'workers/lost_race': 'land.verify',
};

/** Cases with conflicts: their solutions were recorded for one order only, and of others nothing can be said. */
export const withConflicts: readonly string[] = [
  'landing/landing_conflict',
  'workers/landing_conflict',
  'workers/landing_parked',
];

const { cases } = findCases({ names: [], cwd: process.cwd() });

export const allCases: readonly (readonly [string, FoundCase])[] = cases.map(found => [
  caseTitle(found),
  found,
]);

export const exploredCases = allCases.filter(([title]) => unexplored[title] === undefined);

/** In memory, or on git if the case cannot be played there. */
export async function exploreOn(
  found: FoundCase,
  options: Pick<ExploreOptions, 'schedules' | 'forMs'> & Partial<ExploreOptions>,
): Promise<CaseExploration> {
  return exploreCase(found, { policy: 'auto', seed: 1, crashes: false, faults: [], ...options }, context);
}

/** What is wrong, in words; nothing if nothing is. */
export const problemOf = ({ failure, drift }: CaseExploration): string | undefined =>
  failure?.message ?? (drift && `in memory ${drift.failure.message}; on git ${drift.onGit}`);
