import type { LandedCommit } from '../commits.ts';
import type { Git } from '../git.ts';
import type { HeldLock } from '../lock.ts';
import { branchTip } from '../refs.ts';
import type { ConfirmEnd, MoveEnd, ReadyLanding } from './landing.ts';
import { moveBranch } from './move-branch.ts';
import { noteSource, type PrepareRequest } from './prepare.ts';

interface MoveRequest extends PrepareRequest {
  /** `undefined`: it was never taken, or is given back. */
  readonly lock: Pick<HeldLock, 'isHeld'> | undefined;
  readonly ready: ReadyLanding;
  /**
   * Whether the work still is the caller's to land: somebody else may have taken it over while it was verified. Asked with
   * the lock held, right before the branch moves, and never after it has.
   */
  readonly mayLand?: (() => Promise<boolean>) | undefined;
}

/** Fast-forwards the branch to what was prepared, and the checkout with it, if all is still as it was then. */
export async function moveLanding(request: MoveRequest): Promise<MoveEnd> {
  const { repository, lock, source, onto, ready, mayLand } = request;
  const { from, tip, commit } = ready;
  // Somebody who took this process for dead may be landing by now.
  if (!lock?.isHeld()) return { kind: 'lost' };
  const moved = await moveBranch({ ...request, branch: onto, from, to: commit, mayMove: mayLand });
  if (moved.kind !== 'moved') return moved;
  noteSource(repository, { source, tip, commit });
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
 * Whether what was prepared could be moved to now, as far as `moveLanding` would ask. Nothing moves; a note says what the
 * work has become, which counts as soon as that is on a branch.
 */
export async function confirmLanding({
  repository,
  lock,
  source,
  onto,
  ready,
  mayLand,
}: Omit<MoveRequest, 'owner'>): Promise<ConfirmEnd> {
  const { from, tip, commit } = ready;
  if (!lock?.isHeld() || (await branchTip(repository, onto)) !== from) return { kind: 'lost' };
  if (mayLand && !(await mayLand())) return { kind: 'fenced' };
  noteSource(repository, { source, tip, commit });
  return { kind: 'confirmed' };
}
