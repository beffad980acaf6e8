import type { Environment } from '../../engine/index.ts';
import { openOnce } from '../../engine/step/index.ts';
import { branchesOf } from '../../git/index.ts';
import { Purse } from '../budget.ts';
import type { WorkerRules } from '../contract.ts';
import { deliveryEffects } from './delivery.ts';
import { loopEffects } from './loop.ts';
import { taskEffects } from './tasks.ts';

/** Effects of workers, in addition to those of the engine. */
export type WorkerEffects = ReturnType<typeof createWorkerEffects>;

export function createWorkerEffects(environment: Environment, rules: WorkerRules, purse = new Purse()) {
  const repository = openOnce(environment);
  const { projectRoot: cwd, env } = environment;
  const branches = environment.branches ?? branchesOf(repository, { cwd, env });
  const context = { environment, rules, repository, branches, purse };
  return {
    ...taskEffects(context),
    ...deliveryEffects(context),
    ...loopEffects(context),
  };
}
