import type { Environment, Observer } from '../environment.ts';
import { doWork } from './attempt.ts';
import { type PinnedBase, pinBase } from './base.ts';
import { createWorkEffects } from './effects.ts';
import { select } from './selection.ts';
import { openOnce } from './taping.ts';

/** What steps do outside of this process: in shells, with agents, in a repository. */
export type Work = ReturnType<typeof createWork>;

export function createWork(environment: Environment, observe: Observer) {
  const { world } = environment;
  const repository = openOnce(environment);
  return {
    effects: createWorkEffects(environment, observe, repository),
    doWork,
    select,

    /** The commit that workspaces begin with. */
    pinBase: world.effect<void, PinnedBase>({
      name: 'git.base',
      span: 'short',
      keys: () => ({ reads: ['ref:HEAD'] }),
      perform: async () => pinBase(await repository()),
    }),
  };
}
