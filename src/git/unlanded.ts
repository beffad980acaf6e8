import { join } from 'node:path';
import { type BranchRecord, forgetBranch, readBranchRecord } from './branch-records.ts';
import { isCheckedOut } from './checkout-of-branch.ts';
import { readIfThere } from './files.ts';
import type { Git } from './git.ts';
import { branchTip, looseTip } from './refs.ts';
import type { Repository } from './repository.ts';

/** How many commits of a tip no other branch, tag or remote branch has. `besides`: a branch that does not count. */
export async function commitsNowhereElse(git: Git, tip: string, besides?: string): Promise<number> {
  const exclude = besides === undefined ? [] : [`--exclude=${besides}`];
  const count = await git.line([
    'rev-list',
    '--count',
    tip,
    '--not',
    ...exclude,
    '--branches',
    '--tags',
    '--remotes',
  ]);
  return Number(count);
}

/** Like `commitsNowhereElse` for a branch of Reprise, but what was landed, and so became other commits, does not count. */
export async function unlandedCommits(git: Git, tip: string, record: BranchRecord): Promise<number> {
  const count = await commitsNowhereElse(git, tip, record.branch);
  if (count === 0 || record.landed?.tip !== tip) return count;
  return (await commitsNowhereElse(git, record.landed.commit, record.branch)) === 0 ? 0 : count;
}

/** What became of a branch. */
export type BranchFate =
  | { readonly kind: 'deleted'; readonly branch: string; readonly tip: string }
  | {
      readonly kind: 'kept';
      readonly branch: string;
      readonly tip: string;
      readonly commits: number;
      readonly why: KeptBecause;
    }
  | { readonly kind: 'gone'; readonly branch: string };

export type KeptBecause = 'not made by Reprise' | 'unlanded commits' | 'checked out' | 'it moved';

/** How a branch stands, before anything is done about it. */
interface BranchStanding {
  readonly tip: string | undefined;
  readonly commits: number;
}

async function lookAt(repository: Repository, branch: string): Promise<BranchStanding> {
  const { git } = repository;
  const tip = await branchTip(repository, branch);
  if (tip === undefined) return { tip, commits: 0 };
  if (isTipOfMain(repository, { tip, branch })) return { tip, commits: 0 };
  const record = readBranchRecord(repository, branch);
  const commits = await (record ? unlandedCommits(git, tip, record) : commitsNowhereElse(git, tip, branch));
  return { tip, commits };
}

/**
 * Whether the first checkout is on another branch with the same tip: so it is with most workspaces in which nothing was
 * committed, and asking files spares a process. `false` may also mean that files do not tell.
 */
function isTipOfMain(repository: Repository, { tip, branch }: { tip: string; branch: string }): boolean {
  const head = readIfThere(join(repository.commonDir, 'HEAD'))?.trim() ?? '';
  const current = /^ref: refs\/heads\/(.+)$/.exec(head)?.[1];
  return current !== undefined && current !== branch && looseTip(repository.commonDir, current) === tip;
}

/**
 * Deletes a branch that Reprise made, if all its commits are elsewhere. To be called with the lock `worktrees`: two
 * branches with the same commits, each deleted because of the other, would lose them.
 */
export const tidyBranch = async (repository: Repository, branch: string): Promise<BranchFate> =>
  (await prepareToTidy(repository, branch))();

/**
 * The same in two parts, so that the first can be done while something else is looked at. `leaving` is the git folder of
 * a worktree that is being removed, and so does not need the branch any more.
 */
export async function prepareToTidy(
  repository: Repository,
  branch: string,
  leaving?: string,
): Promise<() => Promise<BranchFate>> {
  const { tip, commits } = await lookAt(repository, branch);
  return async () => {
    if (tip === undefined) {
      forgetBranch(repository, branch);
      return { kind: 'gone', branch };
    }
    const kept = (why: KeptBecause): BranchFate => ({ kind: 'kept', branch, tip, commits, why });
    if (readBranchRecord(repository, branch) === undefined) return kept('not made by Reprise');
    if (commits > 0) return kept('unlanded commits');
    if (await isCheckedOut(repository, branch, leaving)) return kept('checked out');
    const args = ['update-ref', '--no-deref', '-d', `refs/heads/${branch}`, tip];
    // Refused if the branch is not where it was: it has commits then that nobody has looked at.
    if ((await repository.git.run(args, { hooks: 'skip' })).code !== 0) return kept('it moved');
    forgetBranch(repository, branch);
    return { kind: 'deleted', branch, tip };
  };
}
