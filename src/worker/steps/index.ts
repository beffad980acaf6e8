import type { BuiltInWork } from '../../engine/step/contract.ts';
import type { Self } from '../contract.ts';
import { dispatchStep } from './dispatch.ts';
import { landStep } from './land.ts';
import { workStep } from './work.ts';

/** What the steps of an iteration do, by name. */
export const builtInsOf = (self: Self): Readonly<Record<string, BuiltInWork>> => ({
  dispatch: dispatchStep(self),
  work: workStep(self),
  land: landStep(self),
});
