import { headInFiles, type Repository, resolveBase } from '../../git/index.ts';
import { privateGitDir } from '../../git/workspace/index.ts';

export interface PinnedBase {
  /** Name of the checked-out branch, or `HEAD` if it is detached. */
  readonly ref: string;
  readonly commit: string;
}

/** Reads the checked-out commit. All workspaces of the run start from it, even if the checkout moves meanwhile. */
export async function pinBase(repository: Repository): Promise<PinnedBase> {
  const head = headInFiles({ ...repository, gitDir: gitDirOf(repository) });
  if (head) return { ref: head.branch ?? 'HEAD', commit: head.commit };
  const [commit, branch] = await Promise.all([
    resolveBase(repository),
    repository.git.run(['symbolic-ref', '--quiet', '--short', 'HEAD']),
  ]);
  return { ref: branch.code === 0 ? branch.stdout.trim() : 'HEAD', commit };
}

/** Returns the git directory of the checkout, which may be a linked worktree. */
const gitDirOf = ({ root, commonDir }: Repository): string =>
  (root === undefined ? undefined : privateGitDir(root)) ?? commonDir;
