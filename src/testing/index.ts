export { CaseFailedError, type CasesOptions, type DefineTest, listCases, type TestCase } from './cases.ts';
export { type ExploredFailure, type ExploreOptions, type ExploreResult, exploreSetup } from './explore.ts';
export type { ExploredEffect, ExploredWorld, Setup } from './explored-world.ts';
export type { Change, Outcome } from './what-if/outcomes.ts';
export type { ClockOverride, Override } from './what-if/override.ts';
export {
  type ReplayOptions,
  type WhatIf,
  type WhatIfMark,
  type WhatIfRun,
  whatIf,
} from './what-if/what-if.ts';
