import type { Environment } from '../engine/environment.ts';
import type { RepositoryOnce } from '../engine/step/taping.ts';
import type { Branches } from '../git/refs.ts';
import type { WorkerRules } from './rules.ts';

/** What stands behind the effects of workers. */
export interface Surroundings {
  readonly environment: Environment;
  readonly rules: WorkerRules;
  readonly repository: RepositoryOnce;
  readonly branches: Branches;
}
