import type { EffectDefinition } from '../../effects/effect.ts';
import { changesSince } from '../../git/diff.ts';
import type { PreparedWorkspace, WorkspaceOrder } from '../../git/orders.ts';
import { findPortRange, type PortRange } from '../../git/ports.ts';
import { branchTip, resolveBase } from '../../git/refs.ts';
import type { Repository } from '../../git/repository.ts';
import { createWorkspace } from '../../git/workspace/create.ts';
import { gitInside } from '../../git/workspace/entries.ts';
import { resetWorkspace } from '../../git/workspace/reset.ts';
import {
  changesIn,
  isSetUp,
  markSetUp,
  type SaveRequest,
  saveWork,
  type WorkFolder,
} from '../../git/workspace/save.ts';
import type { Lease, Owner } from '../../store/port.ts';
import type { Environment, Observer } from '../environment.ts';
import type { KnownWorkspace } from './contract.ts';
import { withoutLease } from './taping.ts';

type Ports = NonNullable<KnownWorkspace['ports']>;

/** Who works in the folder has it for himself. */
export const folderKey = (path: string): string => `wt:${path}`;

/** Where a branch is; `HEAD` is what is checked out, and the commit that it is at. */
export const refKey = (branch: string): string => `ref:${branch}`;

/** The note that all of a branch is on another one. */
export const landedKey = (branch: string): string => `landed:${branch}`;

/** The tip of a branch; null if there is none of that name. */
export const tipOfBranch = (
  repository: () => Promise<Repository>,
): EffectDefinition<string, string | null> => ({
  name: 'workspace.tip',
  span: 'short',
  keys: branch => ({ reads: [refKey(branch)] }),
  perform: async branch => (await branchTip(await repository(), branch)) ?? null,
});

/** What is done with git and the folders of workspaces. */
export function workspaceEffects(
  environment: Environment,
  { observe, repository }: { readonly observe: Observer; readonly repository: () => Promise<Repository> },
) {
  const { world, worktrees, self } = environment;
  /** Ports that were given out and may not be listened on yet. */
  const ports = new Map<string, PortRange>();
  const onWait = ({ pid }: Owner) =>
    observe({ kind: 'notice', message: `waiting for process ${pid}, which is changing worktrees` });
  const inFolder = ({ path }: { readonly path: string }) => ({ writes: [folderKey(path)] });
  /** What is in it, and where its branch is. */
  const onBranch = ({ path, branch }: WorkFolder) => ({ writes: [folderKey(path), refKey(branch)] });
  const ownerOf = ({ incarnation }: Lease) => ({ ...self, incarnation });

  return {
    /** The id of a commit. Throws NOT_A_REPOSITORY, WORKSPACE_FAILED. */
    resolveBase: world.effect<string, string>({
      name: 'workspace.base',
      span: 'short',
      keys: name => ({ reads: [refKey(name)] }),
      perform: async name => resolveBase(await repository(), name),
    }),

    tipOfBranch: world.effect(tipOfBranch(repository)),

    /** Ports that nobody else has, until they are given back; those that it had before, if it had some. */
    takePorts: world.effect<{ readonly key: string; readonly before?: Ports | undefined }, Ports>({
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
    }),

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
        const { made, wasAlone } = await createWorkspace({
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
          onWait,
        });
        return { isFound: made === 'reused', isSetUp: isSetUp(path), wasAlone };
      },
    }),

    /** Back to its base, however the lane fares. What was done in it is kept beside. */
    resetWorkspace: world.effect<WorkspaceOrder, void>({
      name: 'workspace.reset',
      span: 'long',
      taped: { args: withoutLease },
      cleanup: true,
      keys: onBranch,
      perform: async ({ lease, path, base }) => {
        markSetUp(path, false);
        await resetWorkspace({
          repository: await repository(),
          owner: ownerOf(lease),
          path,
          commit: base,
          onWait,
        });
      },
    }),

    markSetUp: world.effect<{ readonly path: string; readonly done: boolean }, void>({
      name: 'workspace.mark-set-up',
      span: 'short',
      keys: inFolder,
      perform: ({ path, done }) => markSetUp(path, done),
    }),

    /** Also after a cancellation, so that nothing is lost. */
    saveWork: world.effect<SaveRequest, Awaited<ReturnType<typeof saveWork>>>({
      name: 'workspace.commit',
      span: 'long',
      cleanup: true,
      keys: onBranch,
      perform: async request => saveWork(await repository(), request),
    }),

    changesIn: world.effect<WorkFolder & { readonly ignoring: readonly string[] }, readonly string[]>({
      name: 'workspace.verify-unchanged',
      span: 'long',
      keys: inFolder,
      perform: async folder => changesIn(await repository(), folder),
    }),

    /** What the commits of a workspace changed, as a patch of at most so many characters. */
    patchOf: world.effect<{ readonly path: string; readonly base: string; readonly limit: number }, string>({
      name: 'workspace.changes',
      span: 'long',
      keys: ({ path }) => ({ reads: [folderKey(path)] }),
      perform: async ({ path, base, limit }) => {
        const git = gitInside(await repository(), path);
        const { patch } = await changesSince(git, { base, patchLimit: limit });
        return patch.truncated ? `${patch.text}\n… (cut off here)` : patch.text;
      },
    }),
  };
}
