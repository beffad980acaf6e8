import type { EffectDefinition } from '../../effects/index.ts';
import {
  branchTip,
  changesSince,
  findPortRange,
  type LockPatience,
  type PortRange,
  type PreparedWorkspace,
  type Repository,
  resolveBase,
  stalledText,
  type WorkspaceOrder,
} from '../../git/index.ts';
import {
  changesIn,
  createWorkspace,
  gitInside,
  markSetUp,
  resetWorkspace,
  type SaveRequest,
  saveWork,
  type WorkFolder,
} from '../../git/workspace/index.ts';
import type { Fence, Lease } from '../../store/index.ts';
import type { Environment, Observer } from '../environment.ts';
import type { KnownWorkspace } from './contract.ts';
import { requireOwner, withoutFence, withoutLease } from './taping.ts';

type PortNumbers = NonNullable<KnownWorkspace['ports']>;

/** Conflict key of a workspace: at most one step uses it at a time. */
export const folderKey = (path: string): string => `wt:${path}`;

/** Conflict key of a branch. `HEAD` stands for the checked-out branch and its commit. */
export const refKey = (branch: string): string => `ref:${branch}`;

/** Conflict key of the record that a branch has landed completely. */
export const landedKey = (branch: string): string => `landed:${branch}`;

/** Effect that returns the tip of a branch, or null if the branch does not exist. */
export const tipOfBranch = (
  repository: () => Promise<Repository>,
): EffectDefinition<string, string | null> => ({
  name: 'workspace.tip',
  span: 'short',
  keys: branch => ({ reads: [refKey(branch)] }),
  perform: async branch => (await branchTip(await repository(), branch)) ?? null,
});

/** Effects on workspaces and their branches. */
export function workspaceEffects(
  environment: Environment,
  { observe, repository }: { readonly observe: Observer; readonly repository: () => Promise<Repository> },
) {
  const { world, store, worktrees, self, settings } = environment;
  /** Ports that are reserved and may not be in use yet. */
  const ports = new Map<string, PortRange>();
  const patience: LockPatience = {
    onWait: (holder, stalledMs) => {
      const waiting = `waiting for process ${holder.pid} to finish changing worktrees`;
      observe({
        kind: 'notice',
        message: stalledMs === undefined ? waiting : stalledText(holder, stalledMs),
      });
    },
    giveUpMs: settings.lockTimeoutMs,
  };
  const inFolder = ({ path }: { readonly path: string }) => ({ writes: [folderKey(path)] });
  /** Keys of the content of a workspace and of its branch. */
  const onBranch = ({ path, branch }: WorkFolder) => ({ writes: [folderKey(path), refKey(branch)] });
  const ownerOf = ({ incarnation }: Lease) => ({ ...self, incarnation });

  return {
    /** Returns the id of a commit. Throws NOT_A_REPOSITORY or WORKSPACE_FAILED. */
    resolveBase: world.effect<string, string>({
      name: 'workspace.base',
      span: 'short',
      keys: name => ({ reads: [refKey(name)] }),
      perform: async name => resolveBase(await repository(), name),
    }),

    tipOfBranch: world.effect(tipOfBranch(repository)),

    /** Reserves ports until they are released: the ones used before, or else unused ones. */
    takePorts: world.effect<{ readonly key: string; readonly before?: PortNumbers | undefined }, PortNumbers>(
      {
        name: 'workspace.ports',
        span: 'short',
        answer: 'tape',
        keys: () => ({ writes: ['ports'] }),
        perform: async ({ key, before }) => {
          const others = [...ports].flatMap(([other, range]) => (other === key ? [] : range));
          const range = before
            ? { first: before.first, last: before.first + before.size - 1 }
            : await findPortRange({ key, taken: others });
          ports.set(key, range);
          return { first: range.first, size: range.last - range.first + 1 };
        },
      },
    ),

    releasePorts: world.effect<string, void>({
      name: 'workspace.release-ports',
      span: 'short',
      answer: 'tape',
      keys: () => ({ writes: ['ports'] }),
      perform: key => void ports.delete(key),
    }),

    createWorkspace: world.effect<WorkspaceOrder, PreparedWorkspace>({
      name: 'workspace.create',
      span: 'long',
      taped: { args: withoutLease },
      keys: ({ path, branch }) => ({ writes: ['gitworktrees', folderKey(path), refKey(branch)] }),
      perform: async ({ runId, lease, unit, path, branch, base }, { signal }) => {
        await requireOwner(store, { runId, lease });
        const { made, isSetUp, wasAlone } = await createWorkspace({
          repository: await repository(),
          owner: ownerOf(lease),
          path,
          branch,
          base,
          run: runId,
          step: unit.step,
          worker: unit.worker,
          include: worktrees.include,
          signal,
          ...patience,
        });
        return { isFound: made === 'reused', isSetUp, wasAlone };
      },
    }),

    /** Resets a workspace to its base, even in a cancelled lane. Its changes are set aside in git. */
    resetWorkspace: world.effect<WorkspaceOrder, void>({
      name: 'workspace.reset',
      span: 'long',
      taped: { args: withoutLease },
      cleanup: true,
      keys: onBranch,
      perform: async ({ runId, lease, path, base }) => {
        await requireOwner(store, { runId, lease });
        const opened = await repository();
        await markSetUp(opened, { path, done: false });
        await resetWorkspace({
          repository: opened,
          owner: ownerOf(lease),
          path,
          commit: base,
          ...patience,
        });
      },
    }),

    markSetUp: world.effect<{ readonly path: string; readonly done: boolean; readonly fence: Fence }, void>({
      name: 'workspace.mark-set-up',
      span: 'short',
      taped: { args: withoutFence },
      keys: inFolder,
      perform: async ({ fence, ...mark }) => {
        await requireOwner(store, fence);
        return markSetUp(await repository(), mark);
      },
    }),

    /** Commits the work, even after a cancellation, so that nothing is lost. */
    saveWork: world.effect<SaveRequest & { readonly fence: Fence }, Awaited<ReturnType<typeof saveWork>>>({
      name: 'workspace.commit',
      span: 'long',
      cleanup: true,
      taped: { args: withoutFence },
      keys: onBranch,
      perform: async ({ fence, ...request }) => {
        await requireOwner(store, fence);
        return saveWork(await repository(), request);
      },
    }),

    changesIn: world.effect<WorkFolder & { readonly ignoring: readonly string[] }, readonly string[]>({
      name: 'workspace.verify-unchanged',
      span: 'long',
      keys: inFolder,
      perform: async folder => changesIn(await repository(), folder),
    }),

    /** Returns the changes of a workspace as a patch, truncated to `limit` characters. */
    patchOf: world.effect<{ readonly path: string; readonly base: string; readonly limit: number }, string>({
      name: 'workspace.changes',
      span: 'long',
      keys: ({ path }) => ({ reads: [folderKey(path)] }),
      perform: async ({ path, base, limit }) => {
        const git = gitInside(await repository(), path);
        const { patch } = await changesSince(git, { base, patchLimit: limit });
        return patch.truncated ? `${patch.text}\n… (truncated)` : patch.text;
      },
    }),
  };
}
