import type { Timestamp } from '../../core/index.ts';
import {
  folderKey,
  landedKey,
  refKey,
  requireOwner,
  tipOfBranch,
  withoutFence,
} from '../../engine/step/index.ts';
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
import type { Fence } from '../../store/index.ts';
import { parkedBranchOf, taskBranch, type WorkerContext } from '../contract.ts';

export interface OwnedWorkspace {
  /** Proof that the caller owns the run that works there. */
  readonly fence: Fence;
  /** Absolute path of the workspace. */
  readonly path: string;
}

/** Polling interval. Git checks every file each time, and a person needs longer than this to clean up. */
const lookEveryMs = 2_000;

/** Effects on finished work other than landing it. */
export function deliveryEffects({ environment, rules, repository }: WorkerContext) {
  const { world, clock, store, self } = environment;
  const ownerOf = ({ lease: { incarnation } }: Fence) => ({ ...self, incarnation });
  const inWorkspace = ({ path, branch }: { readonly path: string; readonly branch: string }) => ({
    writes: [folderKey(path), 'gitworktrees', refKey(branch)],
  });

  return {
    tipOfBranch: world.effect(tipOfBranch(repository)),

    /** Rebases the work onto a commit and leaves its conflicts in the workspace. */
    beginSolving: world.effect<
      OwnedWorkspace & { readonly branch: string; readonly onto: string; readonly ontoName: string },
      BeginResult
    >({
      name: 'conflict.lay-out',
      span: 'long',
      taped: { args: withoutFence },
      keys: inWorkspace,
      perform: async ({ fence, ...request }, { signal }) => {
        await requireOwner(store, fence);
        return beginResolution({ ...request, repository: await repository(), owner: ownerOf(fence), signal });
      },
    }),

    /** Commits the contents of the workspace as the resolution and continues the rebase. */
    continueSolving: world.effect<
      OwnedWorkspace & { readonly resolution: Resolution; readonly at: Timestamp },
      ContinueResult
    >({
      name: 'conflict.take-solution',
      span: 'long',
      taped: { args: withoutFence },
      keys: ({ path, resolution }) => inWorkspace({ path, branch: resolution.branch }),
      perform: async ({ fence, ...request }, { signal }) => {
        await requireOwner(store, fence);
        return continueResolution({
          ...request,
          committer,
          repository: await repository(),
          owner: ownerOf(fence),
          signal,
        });
      },
    }),

    /** Restores the work to its state before the rebase. Also runs after a cancellation. */
    stopSolving: world.effect<OwnedWorkspace & { readonly resolution: Resolution }, void>({
      name: 'conflict.give-up',
      span: 'long',
      cleanup: true,
      taped: { args: withoutFence },
      keys: ({ path, resolution }) => inWorkspace({ path, branch: resolution.branch }),
      perform: async ({ fence, ...request }) => {
        await requireOwner(store, fence);
        await abortResolution({ ...request, repository: await repository(), owner: ownerOf(fence) });
      },
    }),

    /** Waits until the files that block a landing no longer have uncommitted changes in the checkout. */
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

    /** Commits the uncommitted changes of a task. Also runs after a cancellation, so no work is lost. */
    saveUnfinished: world.effect<SaveRequest, void>({
      name: 'work.save',
      span: 'long',
      cleanup: true,
      keys: ({ path, branch }) => ({ writes: [folderKey(path), refKey(branch)] }),
      perform: async request => {
        await saveWork(await repository(), request);
      },
    }),

    /** Parks work that did not land. Returns the name of its branch. */
    park: world.effect<{ readonly task: string; readonly commit: string }, string>({
      name: 'work.park',
      span: 'short',
      keys: ({ task }) => ({ writes: [refKey(parkedBranchOf(task))] }),
      perform: async ({ task, commit }) =>
        parkOnBranch({ repository: await repository(), commit, name: task }),
    }),

    /** Leaves finished work on a branch to be landed outside of Reprise. Returns the name of the branch. */
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

    /** Removes a workspace. Without a fence its run has ended, and so has no owner that could lose it. */
    removeWorkspace: world.effect<
      {
        readonly path: string;
        readonly branch: string;
        readonly incarnation: string;
        readonly fence?: Fence | undefined;
      },
      Removal
    >({
      name: 'workspace.remove',
      span: 'long',
      cleanup: true,
      taped: { args: ({ path, branch }) => ({ path, branch }) },
      // The branch is removed too if all its commits have landed, which is recorded under this key.
      keys: order => ({ writes: [...inWorkspace(order).writes, landedKey(order.branch)] }),
      perform: async ({ incarnation, path, branch, fence }) => {
        if (fence) await requireOwner(store, fence);
        const owner = { ...self, incarnation };
        const { lockTimeoutMs: giveUpMs } = environment.settings;
        return removeWorkspace({ repository: await repository(), owner, path, branch, giveUpMs });
      },
    }),
  };
}
