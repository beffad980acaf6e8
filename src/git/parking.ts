import type { Git } from './git.ts';
import { branchPrefix, safeSegment } from './names.ts';
import { resolveCommit } from './repository.ts';

/** Commits that nothing else pointed to, and where they are now. */
export interface Parked {
  readonly ref: string;
  readonly commit: string;
  readonly commits: number;
}

/** A branch, for work that somebody may want to go on with. */
export const parkedBranch = (name: string, commit: string): string =>
  `${branchPrefix}parked/${parkedName(name, commit)}`;

/** Not a branch: an attempt that was given up is kept, but does not fill the list of branches. */
export const parkedRef = (name: string, commit: string): string =>
  `refs/reprise/parked/${parkedName(name, commit)}`;

const parkedName = (name: string, commit: string): string =>
  `${safeSegment(name.replace(branchPrefix, '').replaceAll('/', '-'))}-${commit.slice(0, 12)}`;

/** Makes the ref, unless it is there already. */
export async function park(git: Git, ref: string, commit: string): Promise<void> {
  if ((await resolveCommit(git, ref)) === commit) return;
  await git.ok(['update-ref', '-m', 'reprise: park', ref, commit, ''], { hooks: 'skip' });
}
