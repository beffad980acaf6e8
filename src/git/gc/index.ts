export { applyGc, type GcDone, gatherGcFacts, type RemovedItem } from './apply.ts';
export { type GcAction, planGc, type RunActivity } from './plan.ts';
