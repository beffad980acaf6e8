import { commitsBetween } from '../commits.ts';
import { makeRecentDurable, makeRefDurable } from '../files.ts';
import { type HeldLock, type LockRequest, type TakenLock, takeRepositoryLock } from '../lock.ts';
import { branchTargets, branchTip } from '../refs.ts';
import { forgetMove } from './interrupted-move.ts';
import {
  type ConfirmEnd,
  type Landing,
  type LandingCourse,
  landing,
  type MoveEnd,
  type ReadyLanding,
} from './landing.ts';
import { moveBranch } from './move-branch.ts';
import {
  noteSourceLanded,
  type PrepareRequest,
  prepareLanding,
  type Verification,
  verifyLanding,
} from './prepare.ts';

interface MoveRequest extends PrepareRequest {
  /** The `land` lock. `undefined` if it was never acquired, or was released. */
  readonly lock: Pick<HeldLock, 'isHeld'> | undefined;
  readonly ready: ReadyLanding;
  /**
   * Checks that the caller still owns the work, which another process may have taken over during verification. Called
   * with the lock held, immediately before the target moves.
   */
  readonly mayLand?: (() => Promise<boolean>) | undefined;
}

/**
 * Fast-forwards the target and its checkout to the rebased work, provided that the lock is held, the target has not moved
 * and the caller still owns the work.
 */
export async function moveLanding(request: MoveRequest): Promise<MoveEnd> {
  const { repository, lock, source, target, ready, mayLand } = request;
  const { from, tip, commit } = ready;
  // Prevents a race with a process that presumed this one dead, took over the lock and is landing.
  if (!lock?.isHeld()) return { kind: 'lost' };
  const branch = (await branchTargets(repository, [target])).get(target)?.branch ?? target;
  // After a power loss, a branch without its objects would be corrupt. Work was made durable when it was saved, so only
  // what rebasing and the user have written since is missing.
  await makeRecentDurable(repository);
  const work = 'branch' in source ? { branch: source.branch, tip } : undefined;
  const moved = await moveBranch({ ...request, work, branch, from, to: commit, mayMove: mayLand });
  if (moved.kind !== 'moved') return moved;
  await makeRefDurable(repository, `refs/heads/${branch}`);
  noteSourceLanded(repository, { source, tip, commit, moved: { onto: branch, from } });
  forgetMove(repository);
  const commits = ready.commits ?? (await commitsBetween(repository.git, { from, to: commit }));
  const { checkout } = moved;
  return { kind: 'moved', commits, wasAlone: lock.isHeld(), ...(checkout !== undefined && { checkout }) };
}

/**
 * Checks the conditions of `moveLanding` without moving the target. Notes that the source became the rebased commit;
 * the source counts as landed once that commit is on a branch.
 */
export async function confirmLanding({
  repository,
  lock,
  source,
  target,
  ready,
  mayLand,
}: Omit<MoveRequest, 'owner'>): Promise<ConfirmEnd> {
  const { from, tip, commit } = ready;
  if (!lock?.isHeld() || (await branchTip(repository, target)) !== from) return { kind: 'lost' };
  if (mayLand && !(await mayLand())) return { kind: 'fenced' };
  noteSourceLanded(repository, { source, tip, commit });
  return { kind: 'confirmed' };
}

export interface LandRequest extends Omit<LandingCourse, 'target'>, Omit<LockRequest, 'name'> {
  /** Target branch, as in `reprise land --onto`. */
  readonly onto: string;
  readonly verify?: Verification | undefined;
  /** Checks that the caller still owns the work. */
  readonly mayLand?: (() => Promise<boolean>) | undefined;
}

/**
 * Lands directly, without recording effects. At most one landing runs per repository, across processes. Until the target
 * moves, only git objects and a scratch folder are written. The source never changes. Throws CANNOT_LAND if the source
 * or the target does not exist.
 */
export function land({
  onto: target,
  verify: verification,
  mayLand,
  ...options
}: LandRequest): Promise<Landing> {
  const request = { ...options, target };
  const { signal } = request;
  let lock: TakenLock | undefined;
  /** While the lock is held, git commands carry the marker of its holder. */
  const markedRequest = () => ({ ...request, repository: lock?.repository ?? request.repository });
  return landing(
    {
      lock: async () => {
        lock = await takeRepositoryLock({ ...request, name: 'land' });
        return { token: lock.token };
      },
      prepare: async () => {
        signal?.throwIfAborted();
        return prepareLanding(markedRequest());
      },
      verify: verification && (({ commit }) => verifyLanding({ ...markedRequest(), commit, verification })),
      move: async ready => {
        signal?.throwIfAborted();
        return moveLanding({ ...markedRequest(), lock, ready, mayLand });
      },
      unlock: async () => lock?.release(),
    },
    request,
  );
}
