import type { BuiltInWork } from '../../engine/step/index.ts';
import type { WorkerHandle } from '../contract.ts';
import { dispatchStep } from './dispatch.ts';
import { landStep } from './land.ts';
import { workStep } from './work.ts';

/** Implementations of an iteration's steps, by name. */
export const builtInsOf = (worker: WorkerHandle): Readonly<Record<string, BuiltInWork>> => ({
  dispatch: dispatchStep(worker),
  work: workStep(worker),
  land: landStep(worker),
});
