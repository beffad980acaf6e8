import type { LandedCommit } from '../commits.ts';
import type { Git } from '../git.ts';
import type { HeldLock } from '../lock.ts';
import { branchTip } from '../refs.ts';
import type { ConfirmEnd, MoveEnd, ReadyLanding } from './landing.ts';
import { moveBranch } from './move-branch.ts';
import { noteSourceLanded, type PrepareRequest } from './prepare.ts';

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
  const moved = await moveBranch({ ...request, branch: target, from, to: commit, mayMove: mayLand });
  if (moved.kind !== 'moved') return moved;
  noteSourceLanded(repository, { source, tip, commit });
  const commits = ready.commits ?? (await commitsBetween(repository.git, from, commit));
  const { checkout } = moved;
  return { kind: 'moved', commits, wasAlone: lock.isHeld(), ...(checkout !== undefined && { checkout }) };
}

async function commitsBetween(git: Git, from: string, to: string): Promise<readonly LandedCommit[]> {
  const output = await git.ok(['log', '--reverse', '-z', '--format=%H %s', `${from}..${to}`]);
  return output
    .split('\0')
    .filter(line => line !== '')
    .map(line => ({ commit: line.slice(0, line.indexOf(' ')), subject: line.slice(line.indexOf(' ') + 1) }));
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
