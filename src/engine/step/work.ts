import { makeRecentDurable, type Repository, readHead, resolveBase } from '../../git/index.ts';
import { lostBranches, type SavedWork } from '../../git/workspace/index.ts';
import type { Environment, Observer } from '../environment.ts';
import { doWork } from './attempt.ts';
import { createWorkEffects } from './effects.ts';
import { select } from './selection.ts';
import { openOnce } from './taping.ts';
import { refKey } from './workspace-effects.ts';

/** The work of steps outside of this process: in shells, with agents and in a repository. */
export type StepWork = ReturnType<typeof createWork>;

export function createWork(environment: Environment, observe: Observer) {
  const { world } = environment;
  const repository = openOnce(environment);
  return {
    effects: createWorkEffects(environment, observe, repository),
    doWork,
    select,

    /** Reads the commit that workspaces start from. */
    pinBase: world.effect<void, PinnedBase>({
      name: 'git.base',
      span: 'short',
      keys: () => ({ reads: ['ref:HEAD'] }),
      perform: async () => pinBase(await repository()),
    }),

    /** Returns the branches whose saved commit no longer exists. */
    lostBranches: world.effect<readonly SavedWork[], readonly string[]>({
      name: 'workspace.lost',
      span: 'short',
      keys: works => ({ writes: works.map(({ branch }) => refKey(branch)) }),
      perform: async works => lostBranches(await repository(), works),
    }),
  };
}

export interface PinnedBase {
  /** Name of the checked-out branch, or `HEAD` if it is detached. */
  readonly ref: string;
  readonly commit: string;
}

/** Reads the checked-out commit. All workspaces of the run start from it, even if the checkout moves meanwhile. */
async function pinBase(repository: Repository): Promise<PinnedBase> {
  const head = await readHead(repository.git);
  await makeRecentDurable(repository, head?.branch === undefined ? 'HEAD' : `refs/heads/${head.branch}`);
  return { ref: head?.branch ?? 'HEAD', commit: head?.commit ?? (await resolveBase(repository)) };
}
