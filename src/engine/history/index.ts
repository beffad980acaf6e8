export { canonicalOrder, type Digests, digestsOf } from './digest.ts';
export { effectiveHistory } from './effective.ts';
export type { ReplayResult } from './resume.ts';
