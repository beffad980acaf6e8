import { realpathSync } from 'node:fs';
import { join, relative } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import {
  isLockFree,
  type LockOrder,
  landingFolder,
  type MoveOrder,
  type PrepareOrder,
  type Repository,
  stalledText,
  type TakenLock,
  takeRepositoryLock,
  type VerifyOrder,
} from '../../git/index.ts';
import {
  type ConfirmEnd,
  confirmLanding,
  type LockResult,
  type MoveEnd,
  moveLanding,
  type PrepareResult,
  prepareLanding,
  type Verification,
  type VerificationResult,
  type VerifyResult,
  verifyLanding,
} from '../../git/landing/index.ts';
import type { Lease } from '../../store/index.ts';
import { attemptFileName, type Environment, type Observer } from '../environment.ts';
import { performShell } from './commands.ts';
import { type RepositoryOnce, withoutLease, withoutToken } from './taping.ts';
import { folderKey, landedKey, refKey } from './workspace-effects.ts';

/** Effects for the phases of a landing. Other lanes may run between any two of them. */
export function landingEffects(
  environment: Environment,
  { observe, repository }: { readonly observe: Observer; readonly repository: RepositoryOnce },
) {
  const { world, self, store } = environment;
  /** Held locks, by the key of the landing. An effect takes only data as arguments, so it looks locks up here. */
  const locks = new Map<string, TakenLock>();
  const ownerOf = ({ incarnation }: Lease) => ({ ...self, incarnation });
  /** While the lock is held, git commands run through its repository, which marks them as the holder's. */
  const repositoryFor = async (key: string) => locks.get(key)?.repository ?? (await repository());

  return {
    /** Waits until no other landing runs, and holds the lock under the key until it is released. */
    lockLanding: world.effect<LockOrder, LockResult>({
      name: 'land.lock',
      span: 'long',
      taped: { args: withoutLease, result: withoutToken },
      awaits: {
        keys: () => ({ writes: ['lock:land'] }),
        isOver: () => {
          const known = repository.known();
          return known === undefined || isLockFree(known, 'land');
        },
      },
      perform: async ({ key, lease }, { signal }) => {
        if (locks.has(key))
          throw new RepriseError('INTERNAL', `a landing with the key ${key} is already in progress`);
        const lock = await takeRepositoryLock({
          repository: await repository(),
          name: 'land',
          owner: ownerOf(lease),
          signal,
          giveUpMs: environment.settings.lockTimeoutMs,
          onWait: (holder, stalledMs) => {
            // Lanes of one process wait for each other all the time.
            if (holder.pid === self.pid && holder.processStart === self.processStart) return;
            const waiting = `waiting for process ${holder.pid} to finish its landing`;
            observe({
              kind: 'notice',
              message: stalledMs === undefined ? waiting : stalledText(holder, stalledMs),
            });
          },
        });
        locks.set(key, lock);
        return { token: lock.token };
      },
    }),

    /** Rebases without moving a branch. Throws CANNOT_LAND if a branch is missing. */
    prepareLanding: world.effect<PrepareOrder, PrepareResult>({
      name: 'land.prepare',
      span: 'short',
      taped: { args: withoutLease },
      keys: ({ branch, onto }) => ({ reads: [refKey(onto), refKey(branch)], writes: [landedKey(branch)] }),
      perform: async ({ key, lease, branch, onto, leavesBranch }) =>
        prepareLanding({
          repository: await repositoryFor(key),
          owner: ownerOf(lease),
          source: { branch },
          target: onto,
          leavesBranch,
          config: configIn(await repository(), environment),
        }),
    }),

    /**
     * Verifies the prepared commit in its own checkout. Git's lock serializes the creation and removal of checkouts.
     */
    verifyLanding: world.effect<VerifyOrder, VerifyResult>({
      name: 'land.verify',
      span: 'long',
      taped: { args: withoutLease },
      keys: order => ({ writes: [folderKey(scratchOf(environment, order))] }),
      perform: async (order, { signal }) =>
        verifyLanding({
          repository: await repositoryFor(order.key),
          owner: ownerOf(order.lease),
          source: { branch: order.branch },
          commit: order.commit,
          verification: verificationOf({ environment, observe, order, signal }),
          signal,
          giveUpMs: environment.settings.lockTimeoutMs,
        }),
    }),

    /**
     * Moves the target and its checkout, provided that the target has not moved and the caller still owns the lock,
     * the run and the task.
     */
    moveLanding: world.effect<MoveOrder, MoveEnd>({
      name: 'land.move',
      span: 'short',
      taped: { args: withoutLease },
      keys: ({ runId, branch, onto, claim }) => ({
        reads: ['lock:land', `lease:${runId}`, refKey(branch), ...claimKeys(claim)],
        writes: [refKey(onto), refKey('HEAD'), landedKey(branch)],
      }),
      perform: async order =>
        moveLanding({
          repository: await repositoryFor(order.key),
          owner: ownerOf(order.lease),
          lock: locks.get(order.key),
          source: { branch: order.branch },
          target: order.onto,
          ready: order.ready,
          mayLand: () => mayLand(store, order),
        }),
    }),

    /** Checks whether the target could be moved now, without moving it. */
    confirmLanding: world.effect<MoveOrder, ConfirmEnd>({
      name: 'land.confirm',
      span: 'short',
      taped: { args: withoutLease },
      keys: ({ runId, branch, onto, claim }) => ({
        reads: ['lock:land', `lease:${runId}`, refKey(onto), ...claimKeys(claim)],
        writes: [landedKey(branch)],
      }),
      perform: async order =>
        confirmLanding({
          repository: await repositoryFor(order.key),
          lock: locks.get(order.key),
          source: { branch: order.branch },
          target: order.onto,
          ready: order.ready,
          mayLand: () => mayLand(store, order),
        }),
    }),

    /** Does nothing if the lock is not held. */
    unlockLanding: world.effect<string, void>({
      name: 'land.unlock',
      span: 'short',
      cleanup: true,
      keys: () => ({ writes: ['lock:land'] }),
      perform: key => {
        locks.get(key)?.release();
        locks.delete(key);
      },
    }),
  };
}

/** Returns the path of `reprise.yaml` relative to the top of the repository, which may hold several projects. */
function configIn({ root }: Repository, { projectRoot }: Pick<Environment, 'projectRoot'>): string {
  const inside = root === undefined ? '' : relative(root, realpathSync(projectRoot));
  return inside.startsWith('..') ? 'reprise.yaml' : join(inside, 'reprise.yaml');
}

const claimKeys = (claim: MoveOrder['claim']): readonly string[] => (claim ? [`claim:${claim.task}`] : []);

/** Prevents a race: an owner that was presumed dead and returns must not land what its successor is landing. */
export const mayLand = async (
  store: Environment['store'],
  { runId, lease, claim }: Pick<MoveOrder, 'runId' | 'lease' | 'claim'>,
): Promise<boolean> =>
  (await store.holdsRun(runId, lease)) &&
  (claim === undefined || (await store.claims.isHeld({ ...claim, runId })));

interface VerifyContext {
  readonly environment: Environment;
  readonly observe: Observer;
  readonly order: VerifyOrder;
  readonly signal: AbortSignal;
}

/** Returns the folder of the checkout for verification. */
const scratchOf = (
  { worktrees }: Pick<Environment, 'worktrees'>,
  { runId, unit }: Pick<VerifyOrder, 'runId' | 'unit'>,
): string => join(landingFolder(worktrees.folder, runId), attemptFileName(unit));

/** Returns the verification that the project and the workflow define. */
export const verificationOf = (context: VerifyContext): Verification => ({
  path: scratchOf(context.environment, context.order),
  include: context.environment.worktrees.include,
  run: ({ path }) => verifyAt(context, path),
});

/** Runs the setup commands first, because the checkout is new. */
async function verifyAt(
  { environment, observe, order, signal }: VerifyContext,
  path: string,
): Promise<VerificationResult> {
  const { runId, lease, unit } = order;
  const setup = environment.worktrees.setup.map(script => ({ script, shell: 'bash' as const, env: {} }));
  const env = { ...order.env, REPRISE_WORKSPACE: path };
  let output = '';
  for (const [index, command] of [...setup, order.command].entries()) {
    const what = index < setup.length ? `verify-setup-${index + 1}` : 'verify';
    const { end } = await performShell(
      { environment, observe },
      { runId, lease, unit, what, command, folder: path, env },
      signal,
    );
    signal.throwIfAborted();
    if (end.kind === 'cancelled') return { passed: false, output: 'cancelled' };
    output = end.tail;
    if (end.kind === 'failed') return { passed: false, output: end.error.message };
  }
  return { passed: true, output };
}
