import { headInFiles, resolveBase } from '../../git/refs.ts';
import type { Repository } from '../../git/repository.ts';
import { privateGitDir } from '../../git/workspace/entries.ts';

export interface PinnedBase {
  /** The branch that is checked out; `HEAD` if none is. */
  readonly ref: string;
  readonly commit: string;
}

/** What is checked out now: all workspaces of the run begin there, whatever happens to the checkout meanwhile. */
export async function pinBase(repository: Repository): Promise<PinnedBase> {
  const head = headInFiles({ ...repository, gitDir: gitDirOf(repository) });
  if (head) return { ref: head.branch ?? 'HEAD', commit: head.commit };
  const [commit, branch] = await Promise.all([
    resolveBase(repository),
    repository.git.run(['symbolic-ref', '--quiet', '--short', 'HEAD']),
  ]);
  return { ref: branch.code === 0 ? branch.stdout.trim() : 'HEAD', commit };
}

/** Of the checkout itself, which may be a linked worktree. */
const gitDirOf = ({ root, commonDir }: Repository): string =>
  (root === undefined ? undefined : privateGitDir(root)) ?? commonDir;
