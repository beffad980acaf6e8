import type { Timestamp } from '../../core/index.ts';
import { folderKey, landedKey, refKey, tipOfBranch, withoutLease } from '../../engine/step/index.ts';
import {
  abortResolution,
  type BeginResult,
  beginResolution,
  type ContinueResult,
  continueResolution,
  type Resolution,
} from '../../git/conflict/index.ts';
import { anyChanged, anyChangedNow, committer, pushBranch } from '../../git/index.ts';
import {
  deliverOnBranch,
  parkOnBranch,
  type Removal,
  removeWorkspace,
  type SaveRequest,
  saveWork,
} from '../../git/workspace/index.ts';
import type { Lease } from '../../store/index.ts';
import { parkedBranchOf, taskBranch, type WorkerContext } from '../contract.ts';

export interface LeasedWorkspace {
  readonly lease: Lease;
  /** Absolute. */
  readonly path: string;
}

/** A person takes longer, and git has to look at every file. */
const lookEveryMs = 2_000;

/** What becomes of finished work beside landing it. */
export function deliveryEffects({ environment, rules, repository }: WorkerContext) {
  const { world, clock, self } = environment;
  const ownerOf = ({ incarnation }: Lease) => ({ ...self, incarnation });
  const inWorkspace = ({ path, branch }: { readonly path: string; readonly branch: string }) => ({
    writes: [folderKey(path), 'gitworktrees', refKey(branch)],
  });

  return {
    tipOfBranch: world.effect(tipOfBranch(repository)),

    /** Lays out where work does not fit onto a commit any more. */
    beginSolving: world.effect<
      LeasedWorkspace & { readonly branch: string; readonly onto: string; readonly ontoName: string },
      BeginResult
    >({
      name: 'conflict.lay-out',
      span: 'long',
      taped: { args: withoutLease },
      keys: inWorkspace,
      perform: async ({ lease, ...request }, { signal }) =>
        beginResolution({ ...request, repository: await repository(), owner: ownerOf(lease), signal }),
    }),

    /** Takes what is in the workspace for the solution. */
    goOnSolving: world.effect<
      LeasedWorkspace & { readonly resolution: Resolution; readonly at: Timestamp },
      ContinueResult
    >({
      name: 'conflict.take-solution',
      span: 'long',
      taped: { args: withoutLease },
      keys: ({ path, resolution }) => inWorkspace({ path, branch: resolution.branch }),
      perform: async ({ lease, ...request }, { signal }) =>
        continueResolution({
          ...request,
          committer,
          repository: await repository(),
          owner: ownerOf(lease),
          signal,
        }),
    }),

    /** Back to the work as it was. Also after a cancellation. */
    stopSolving: world.effect<LeasedWorkspace & { readonly resolution: Resolution }, void>({
      name: 'conflict.give-up',
      span: 'long',
      cleanup: true,
      taped: { args: withoutLease },
      keys: ({ path, resolution }) => inWorkspace({ path, branch: resolution.branch }),
      perform: async ({ lease, ...request }) => {
        await abortResolution({ ...request, repository: await repository(), owner: ownerOf(lease) });
      },
    }),

    /** Waits until the files of a checkout that are in the way of a landing have no changes any more. */
    checkoutCleared: world.effect<{ readonly path: string; readonly files: readonly string[] }, void>({
      name: 'checkout.cleared',
      span: 'long',
      awaits: {
        keys: ({ path }) => ({ reads: [folderKey(path), refKey('HEAD')] }),
        isOver: ({ path, files }) => !anyChangedNow({ cwd: path, env: environment.env }, files),
      },
      perform: async ({ path, files }, { signal }) => {
        const git = (await repository()).git.with({ cwd: path });
        while (await anyChanged(git, files)) await clock.waitUntil(clock.now() + lookEveryMs, signal);
      },
    }),

    /** Commits what a task has left uncommitted. Also after a cancellation, so that nothing is lost. */
    saveLeft: world.effect<SaveRequest, void>({
      name: 'work.save',
      span: 'long',
      cleanup: true,
      keys: ({ path, branch }) => ({ writes: [folderKey(path), refKey(branch)] }),
      perform: async request => {
        await saveWork(await repository(), request);
      },
    }),

    /** Puts work that did not land where it is found again, and gives the branch. */
    park: world.effect<{ readonly task: string; readonly commit: string }, string>({
      name: 'work.park',
      span: 'short',
      keys: ({ task }) => ({ writes: [refKey(parkedBranchOf(task))] }),
      perform: async ({ task, commit }) =>
        parkOnBranch({ repository: await repository(), commit, name: task }),
    }),

    /** Leaves work on a branch for somebody else to land. */
    deliver: world.effect<{ readonly task: string; readonly commit: string }, string>({
      name: 'work.deliver',
      span: 'short',
      keys: ({ task }) => ({ writes: [refKey(taskBranch(task))] }),
      perform: async ({ task, commit }) =>
        deliverOnBranch({ repository: await repository(), commit, name: task }),
    }),

    push: world.effect<{ readonly branch: string; readonly commit: string }, void>({
      name: 'git.push',
      span: 'long',
      answer: 'tape',
      keys: ({ branch }) => ({ reads: [refKey(branch)], writes: [`remote:${rules.remote}/${branch}`] }),
      perform: async ({ branch, commit }) => {
        const { git } = await repository();
        await pushBranch({ git, remote: rules.remote, branch, commit });
      },
    }),

    removeWorkspace: world.effect<
      { readonly path: string; readonly branch: string; readonly incarnation: string },
      Removal
    >({
      name: 'workspace.remove',
      span: 'long',
      cleanup: true,
      taped: { args: ({ path, branch }) => ({ path, branch }) },
      // Its branch goes with it if all its commits are elsewhere, which is noted when they come there.
      keys: order => ({ writes: [...inWorkspace(order).writes, landedKey(order.branch)] }),
      perform: async ({ incarnation, path, branch }) =>
        removeWorkspace({ repository: await repository(), owner: { ...self, incarnation }, path, branch }),
    }),
  };
}
