import { type LockRequest, type TakenLock, takeRepositoryLock } from '../lock.ts';
import { moveLanding } from './advance.ts';
import { type Landing, type LandingCourse, landing } from './landing.ts';
import { prepareLanding, type Verification, verifyLanding } from './prepare.ts';

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
