export { canonicalOrder, type Digests, digestsOf } from './digest.ts';
export { effectiveHistory, type ReplayResult } from './effective.ts';
