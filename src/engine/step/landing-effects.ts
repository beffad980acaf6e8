import { join } from 'node:path';
import { RepriseError } from '../../core/errors.ts';
import { confirmLanding, moveLanding } from '../../git/landing/advance.ts';
import type { ConfirmEnd, Locked, MoveEnd, Prepared, Verified } from '../../git/landing/landing.ts';
import { prepareLanding, type Verdict, type Verification, verifyLanding } from '../../git/landing/prepare.ts';
import { isLockFree, type TakenLock, takeRepositoryLock } from '../../git/lock.ts';
import type { LockOrder, MoveOrder, PrepareOrder, VerifyOrder } from '../../git/orders.ts';
import type { Lease } from '../../store/port.ts';
import type { Environment, Observer } from '../environment.ts';
import { attemptFileName } from '../log-files.ts';
import { performShell } from './commands.ts';
import { type RepositoryOnce, withoutLease, withoutToken } from './taping.ts';
import { folderKey, landedKey, refKey } from './workspace-effects.ts';

/** The steps of a landing. Between any two of them others may go on. */
export function landingEffects(
  environment: Environment,
  { observe, repository }: { readonly observe: Observer; readonly repository: RepositoryOnce },
) {
  const { world, self, store } = environment;
  /** By the key of the landing: an effect's arguments are data, and a lock is not. */
  const locks = new Map<string, TakenLock>();
  const ownerOf = ({ incarnation }: Lease) => ({ ...self, incarnation });
  /** Its commands are marked as the holder's while the lock is held. */
  const repositoryFor = async (key: string) => locks.get(key)?.repository ?? (await repository());

  return {
    /** Waits until nobody else lands; the lock is held under the key until it is given back. */
    lockLanding: world.effect<LockOrder, Locked>({
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
        if (locks.has(key)) throw new RepriseError('INTERNAL', `a landing is under way as ${key} already`);
        const lock = await takeRepositoryLock({
          repository: await repository(),
          name: 'land',
          owner: ownerOf(lease),
          signal,
          onWait: ({ pid }) =>
            observe({ kind: 'notice', message: `waiting for process ${pid}, which is landing` }),
        });
        locks.set(key, lock);
        return { token: lock.token };
      },
    }),

    /** Changes no branch. Throws CANNOT_LAND if one is missing. */
    prepareLanding: world.effect<PrepareOrder, Prepared>({
      name: 'land.prepare',
      span: 'short',
      taped: { args: withoutLease },
      keys: ({ branch, onto }) => ({ reads: [refKey(onto), refKey(branch)], writes: [landedKey(branch)] }),
      perform: async ({ key, lease, branch, onto, leavesBranch }) =>
        prepareLanding({
          repository: await repositoryFor(key),
          owner: ownerOf(lease),
          source: { branch },
          onto,
          leavesBranch,
        }),
    }),

    /** Tries what would land. Its checkout comes and goes beside those of others, one at a time by git's own lock. */
    verifyLanding: world.effect<VerifyOrder, Verified>({
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
        }),
    }),

    /** Moves the branch, and what is checked out of it, if it is where it was and whoever asks still has lock, run and task. */
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
          onto: order.onto,
          ready: order.ready,
          mayLand: () => mayLand(store, order),
        }),
    }),

    /** Whether it could be moved now; nothing moves. */
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
          onto: order.onto,
          ready: order.ready,
          mayLand: () => mayLand(store, order),
        }),
    }),

    /** Nothing happens if the lock is not held. */
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

const claimKeys = (claim: MoveOrder['claim']): readonly string[] => (claim ? [`claim:${claim.task}`] : []);

/** Whoever was taken for dead and comes back must not land what somebody else is landing. */
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

/** Where what would land is checked out. */
const scratchOf = (
  { stateDir }: Pick<Environment, 'stateDir'>,
  { runId, unit }: Pick<VerifyOrder, 'runId' | 'unit'>,
): string => join(stateDir, 'landing', runId, attemptFileName(unit));

/** What has to pass, as the project and the workflow say. */
export const verificationOf = (context: VerifyContext): Verification => ({
  path: scratchOf(context.environment, context.order),
  include: context.environment.worktrees.include,
  run: ({ path }) => verifyAt(context, path),
});

/** The checkout is new, so it is made ready first. */
async function verifyAt(
  { environment, observe, order, signal }: VerifyContext,
  path: string,
): Promise<Verdict> {
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
