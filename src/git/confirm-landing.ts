import type { MoveRequest } from './landing/advance.ts';
import { noteSource } from './landing/prepare.ts';
import type { ConfirmEnd } from './landing-steps.ts';
import { branchTip } from './refs.ts';

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
