import type { Environment } from '../../engine/environment.ts';
import { openOnce } from '../../engine/step/taping.ts';
import { branchesOf } from '../../git/refs.ts';
import type { WorkerRules } from '../contract.ts';
import { deliveryEffects } from './delivery.ts';
import { loopEffects } from './loop.ts';
import { taskEffects } from './tasks.ts';

/** Every call of workers to the outside, beside those of the engine. */
export type WorkerEffects = ReturnType<typeof createWorkerEffects>;

export function createWorkerEffects(environment: Environment, rules: WorkerRules) {
  const repository = openOnce(environment);
  const branches = environment.branches ?? branchesOf(repository);
  const surroundings = { environment, rules, repository, branches };
  return {
    ...taskEffects(surroundings),
    ...deliveryEffects(surroundings),
    ...loopEffects(surroundings),
  };
}
