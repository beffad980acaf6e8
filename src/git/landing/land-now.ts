import { type LockRequest, type TakenLock, takeRepositoryLock } from '../lock.ts';
import { moveLanding } from './advance.ts';
import { type Landing, type LandingCourse, landing } from './landing.ts';
import { prepareLanding, type Verification, verifyLanding } from './prepare.ts';

export interface LandRequest extends LandingCourse, Omit<LockRequest, 'name'> {
  readonly verify?: Verification | undefined;
  /** Whether the work still is the caller's to land. */
  readonly mayLand?: (() => Promise<boolean>) | undefined;
}

/**
 * Lands without any world around it. One landing at a time per repository, across processes. Until the last step only
 * objects and a scratch folder are written; the work itself is never changed. Throws CANNOT_LAND if a branch is missing.
 */
export function land({ verify: verification, mayLand, ...request }: LandRequest): Promise<Landing> {
  const { signal } = request;
  let lock: TakenLock | undefined;
  /** Git is marked as the holder's while the lock is held. */
  const inLock = () => ({ ...request, repository: lock?.repository ?? request.repository });
  return landing(
    {
      lock: async () => {
        lock = await takeRepositoryLock({ ...request, name: 'land' });
        return { token: lock.token };
      },
      prepare: async () => {
        signal?.throwIfAborted();
        return prepareLanding(inLock());
      },
      verify: verification && (({ commit }) => verifyLanding({ ...inLock(), commit, verification })),
      move: async ready => {
        signal?.throwIfAborted();
        return moveLanding({ ...inLock(), lock, ready, mayLand });
      },
      unlock: async () => lock?.release(),
    },
    request,
  );
}
