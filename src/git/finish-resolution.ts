import { isCheckedOut } from './checkout-of-branch.ts';
import { bringTo, type Place } from './conflict/lay-out.ts';
import type { Finishing, ResolutionRequest, Resolved } from './conflict/progress.ts';
import { withRepositoryLock } from './lock.ts';
import { park, parkedRef } from './parking.ts';
import { resolveCommit } from './repository.ts';
import { worktreeStatus } from './status.ts';
import { shellWord } from './words.ts';

/** The branch is not where it was, or somebody else has it checked out. What was solved is parked. */
export interface ResolutionRefused {
  readonly kind: 'refused';
  readonly why: string;
  readonly hint: string;
}

/**
 * Moves the branch to what was solved, and checks it out again. Files first, then the branch, then HEAD: whoever commits
 * what a crash left in between does not take back what the branch has.
 */
export const finishResolution = (
  request: ResolutionRequest,
  place: Place,
  { from, resolved }: Finishing,
): Promise<Resolved | ResolutionRefused> =>
  withRepositoryLock({ ...request, name: 'worktrees' }, async ({ repository }) => {
    const { git, gitDir, branch } = place;
    const { commit } = resolved;
    const ref = `refs/heads/${branch}`;
    const refuse = async (refusal: ResolutionRefused): Promise<ResolutionRefused> => {
      const kept = parkedRef(branch, commit);
      await park(git, kept, commit);
      return { ...refusal, hint: `${refusal.hint}\nwhat was solved is kept: git log ${shellWord(kept)}` };
    };
    const [current, status] = await Promise.all([resolveCommit(git, ref), worktreeStatus(git)]);
    if (current !== from && current !== commit) return refuse(movedAway(branch, current));
    if (await isCheckedOut(repository, branch, gitDir)) return refuse(checkedOutElsewhere(branch));
    // Done before, by a call whose answer was lost: somebody may be at work here again.
    if (current === commit && status.branch === branch) return resolved;
    await bringTo(git, commit);
    const move = ['update-ref', '--no-deref', '-m', 'reprise: solve', ref, commit, from];
    if (current !== commit && (await git.run(move, { hooks: 'skip' })).code !== 0) {
      return refuse(movedAway(branch, await resolveCommit(git, ref)));
    }
    await git.ok(['symbolic-ref', '-m', 'reprise: solve', 'HEAD', ref]);
    return resolved;
  });

export const movedAway = (branch: string, to: string | undefined): ResolutionRefused => ({
  kind: 'refused',
  why:
    to === undefined
      ? `${branch} was deleted while its conflicts were solved`
      : `${branch} was moved to ${to.slice(0, 10)} by somebody else while its conflicts were solved`,
  hint: `see what it holds now, then land it again: git log ${shellWord(branch)}`,
});

const checkedOutElsewhere = (branch: string): ResolutionRefused => ({
  kind: 'refused',
  why: `${branch} was checked out somewhere else while its conflicts were solved`,
  hint: 'find out where, and switch to another branch there: git worktree list',
});
