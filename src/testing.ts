/**
 * Runs test cases of Reprise in other test runners, such as Vitest and Node's own.
 *
 * ```ts
 * import { test } from 'vitest'; // or from 'node:test'
 * import { cases } from 'reprise/testing';
 *
 * cases('cases', test);
 * ```
 */
import { runProgram, testContext } from './cli/index.ts';
import {
  type CasesOptions,
  type DefineTest,
  type ExploreOptions,
  type ExploreResult,
  exploreSetup,
  listCases,
  type ReplayOptions,
  type Setup,
  type TestCase,
  type WhatIf,
  whatIf,
} from './testing/index.ts';

export type { CaseFailure, FailureKind } from './cases/index.ts';
export type { ErrorData, HistoryEvent } from './core/index.ts';
export {
  CaseFailedError,
  type CasesOptions,
  type Change,
  type ClockOverride,
  type DefineTest,
  type ExploredEffect,
  type ExploredFailure,
  type ExploredWorld,
  type ExploreOptions,
  type ExploreResult,
  type Outcome,
  type Override,
  type ReplayOptions,
  type Setup,
  type TestCase,
  type WhatIf,
  type WhatIfMark,
  type WhatIfRun,
} from './testing/index.ts';

const here = () => testContext({ env: process.env, cwd: process.cwd() }, runProgram);

/**
 * Lists the test cases in a folder, `cases` by default. With `test`, each case becomes a test, which replays the case from
 * its tapes and fails with the message of `reprise test`. To raise the timeout, pass it where you define the tests:
 * `cases('cases', (title, run) => test(title, run, 60_000))`.
 *
 * A changed snapshot is written next to the old one as `.snap.new`. `REPRISE_ACCEPT=1 npx vitest` updates all snapshots,
 * `reprise test <case> --accept` those of one case. In CI (`CI` is set) nothing is written, and updating is refused.
 *
 * Throws CASE_NOT_FOUND if there are no cases.
 */
export function cases(from: string | CasesOptions = {}, test?: DefineTest): readonly TestCase[] {
  const options = typeof from === 'string' ? { folder: from } : from;
  return listCases(test ? { ...options, test } : options, here());
}

/**
 * Shows what would have happened: replays a recorded case twice, as it is and with overrides, and compares the histories.
 * Agents and scripts come from the recording, git is real and runs in a temporary folder, and the store is in memory.
 * Writes neither to the case nor to the project. Time passes only during sleeps, and for steps in `clock.takes`.
 *
 * A step without a recording or an overridden output starts and does not end. The other steps continue as far as
 * possible, the run is marked `inconclusive`, and `notes` names the step.
 *
 * Throws CASE_NOT_FOUND, NOT_RECORDED, and USAGE for an override that does not fit the case.
 */
export const replay = (
  testCase: string | Pick<TestCase, 'file'>,
  options: ReplayOptions = {},
): Promise<WhatIf> => whatIf(typeof testCase === 'string' ? testCase : testCase.file, options, here());

/**
 * Runs concurrent lanes of code in many orders to find one that breaks an invariant. `setup` is called for each schedule
 * and creates the shared state, the effects that access it, and the lanes. The function that it returns is called when
 * all lanes have ended, and throws if an invariant does not hold. Other lanes may run between two effects of a lane. A
 * lane must await nothing but effects.
 *
 * ```ts
 * const result = await explore(({ effect, lane }) => {
 *   let seats = 1;
 *   const look = effect({ name: 'look', reads: ['seats'], perform: () => seats });
 *   const book = effect({ name: 'book', writes: ['seats'], perform: () => seats-- });
 *   const buy = async () => ((await look()) > 0 ? book() : undefined);
 *   lane('ann', buy);
 *   lane('bob', buy);
 *   return () => assert(seats >= 0, 'sold more seats than there are');
 * });
 * assert(!result.failure, String(result));
 * ```
 *
 * The result says whether every order was played or how many schedules were sampled. A failure contains its minimized
 * schedule, as a diagram and as a string that `explore` can perform again.
 */
export const explore = (setup: Setup, options: ExploreOptions = {}): Promise<ExploreResult> =>
  exploreSetup(setup, options);
