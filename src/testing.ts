/**
 * Test cases of Reprise in other test runners, such as Vitest and Node's own.
 *
 * ```ts
 * import { test } from 'vitest'; // or from 'node:test'
 * import { cases } from 'reprise/testing';
 *
 * cases('cases', test);
 * ```
 */
import { testContext } from './cli/other-commands.ts';
import { runProgram } from './cli/program.ts';
import { type CasesOptions, type DefineTest, listCases, type TestCase } from './testing/cases.ts';
import { type ExploreOptions, type ExploreResult, exploreSetup } from './testing/explore.ts';
import type { Setup } from './testing/explored-world.ts';
import { type ReplayOptions, type WhatIf, whatIf } from './testing/what-if/what-if.ts';

export type { CaseFailure, FailureKind } from './cases/result.ts';
export type { ErrorData } from './core/errors.ts';
export type { HistoryEvent } from './core/events.ts';
export { CaseFailedError, type CasesOptions, type DefineTest, type TestCase } from './testing/cases.ts';
export type { ExploredFailure, ExploreOptions, ExploreResult } from './testing/explore.ts';
export type { ExploredEffect, ExploredWorld, Setup } from './testing/explored-world.ts';
export type { Change, Outcome } from './testing/what-if/outcomes.ts';
export type { ClockOverride, Override } from './testing/what-if/override.ts';
export type { ReplayOptions, WhatIf, WhatIfMark, WhatIfRun } from './testing/what-if/what-if.ts';

const here = () => testContext({ env: process.env, cwd: process.cwd() }, runProgram);

/**
 * The test cases in a folder, `cases` unless it is said; with `test`, each becomes a test. A test plays its case from
 * the tapes and fails with what `reprise test` prints. Give tests that take long more time where you define them:
 * `cases('cases', (title, run) => test(title, run, 60_000))`.
 *
 * Snapshots: what is new is left beside the old one as `.snap.new`. `REPRISE_ACCEPT=1 npx vitest` takes all of them
 * over, `reprise test <case> --accept` one. In CI (`CI` is set) nothing is ever written, and accepting is refused.
 *
 * Throws CASE_NOT_FOUND if there are no cases.
 */
export function cases(from: string | CasesOptions = {}, test?: DefineTest): readonly TestCase[] {
  const options = typeof from === 'string' ? { folder: from } : from;
  return listCases(test ? { ...options, test } : options, here());
}

/**
 * What would have happened: plays a recorded case twice, as it is and with overrides, and compares the histories.
 * Agents and scripts are served from the recording, git is real, in a temporary folder; the store is in memory, and
 * neither the case nor the project is written to. Time passes only while something sleeps, or where `clock.takes` says so.
 *
 * A step that was never recorded, and that no override gives an output to, starts and does not end: the rest goes on as
 * far as it can, the run is marked `inconclusive`, and `notes` says which step it was.
 *
 * Throws CASE_NOT_FOUND, NOT_RECORDED, and USAGE for an override that does not fit the case.
 */
export const replay = (
  testCase: string | Pick<TestCase, 'file'>,
  options: ReplayOptions = {},
): Promise<WhatIf> => whatIf(typeof testCase === 'string' ? testCase : testCase.file, options, here());

/**
 * Runs lanes of code in many orders, and finds the one that breaks them. `setup` is called for each schedule: it makes what
 * lanes share, the effects through which they touch it, and the lanes; what it returns is called when all have ended, and
 * throws if something is not as it must be. Between two effects of a lane any other may go on; a lane awaits nothing else.
 *
 * ```ts
 * const result = await explore(({ effect, lane }) => {
 *   let seats = 1;
 *   const look = effect({ name: 'look', reads: ['seats'], perform: () => seats });
 *   const book = effect({ name: 'book', writes: ['seats'], perform: () => seats-- });
 *   const buy = async () => ((await look()) > 0 ? book() : undefined);
 *   lane('ann', buy);
 *   lane('bob', buy);
 *   return () => assert(seats >= 0, 'sold a seat that is not there');
 * });
 * assert(!result.failure, String(result));
 * ```
 *
 * The result says whether every order was seen, or how many were sampled. A failure has the schedule that shows it, with
 * as few switches between lanes as were found, as a diagram and as a text that `explore` performs again.
 */
export const explore = (setup: Setup, options: ExploreOptions = {}): Promise<ExploreResult> =>
  exploreSetup(setup, options);
