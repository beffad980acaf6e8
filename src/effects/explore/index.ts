export { type Coverage, CoverageCounter } from './coverage.ts';
export { Dpor, type DporOptions } from './dpor.ts';
export { NoProgressError, verdictOf } from './fairness.ts';
export { followLeniently, followStrictly, minimise } from './minimise.ts';
export {
  continueLast,
  type Expected,
  expectedFrom,
  nonPreemptivePolicy,
  oneOf,
  type PolicyName,
  policyNames,
  type Random,
  type SamplerName,
  samplers,
  samplersOf,
  scatter,
  seeded,
} from './policies.ts';
export {
  clockLane,
  formatSchedule,
  type Move,
  type Perform,
  type Performed,
  type Point,
  type Policy,
  parseSchedule,
  ScheduleCut,
  type ScheduleVerdict,
  switchesIn,
  withoutIdleEnd,
} from './schedule.ts';
export { exploringScheduler } from './scheduler.ts';
export { type FoundFailure, notDeterministic, search, twice } from './search.ts';
