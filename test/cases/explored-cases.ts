import type { CaseExploreOptions } from '../../src/cases/explore/contract.ts';
import { type CaseExploration, exploreCase } from '../../src/cases/explore/explore.ts';
import { type FoundCase, findCases } from '../../src/cases/manifest/find.ts';
import { caseTitle } from '../../src/cases/result.ts';
import { testContext } from '../../src/cli/other-commands.ts';
import { runProgram } from '../../src/cli/program.ts';

const context = testContext({ env: process.env, cwd: process.cwd() }, runProgram);

/** Cases of this repository that cannot be explored, with the expected reason. */
export const unexplored: Readonly<Record<string, RegExp>> = {
  'composed/served_sessions': /has not been recorded/,
  'workers/worker_sessions': /has not been recorded/,
  'endings/ctrl_c': /was interrupted while it was recorded/,
  'endings/fail_fast': /was interrupted while it was recorded/,
  'endings/timeout': /was interrupted while it was recorded/,
  'workers/init_fresh': /has no command that can be explored/,
  'workers/status_no_workers': /has no command that can be explored/,
};

/** Cases in which the script of an effect acts as an outside process, so that the keys do not cover its changes. */
export const withOutsiders: Readonly<Record<string, string>> = {
  'endings/foreign_event': 'shell.run',
  'endings/retry': 'shell.run',
  'landing/lost_race': 'land.verify',
  'landing/lost_race_elsewhere': 'land.verify',
  'workers/claim_taken_back': 'land.verify',
  'workers/lost_race': 'land.verify',
};

/** Cases with a conflict. Its resolution was recorded for one order, so other orders are inconclusive. */
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

/** Explores a case with default options. */
export async function exploreOn(
  found: FoundCase,
  options: Pick<CaseExploreOptions, 'schedules' | 'forMs'> & Partial<CaseExploreOptions>,
): Promise<CaseExploration> {
  return exploreCase(found, { policy: 'auto', seed: 1, crashes: false, faults: [], ...options }, context);
}

/** Describes the failure or drift; `undefined` if there is none. */
export const problemOf = ({ failure, drift }: CaseExploration): string | undefined =>
  failure?.message ?? (drift && `in memory ${drift.failure.message}; on git ${drift.onGit}`);
