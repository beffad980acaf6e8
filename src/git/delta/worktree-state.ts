import type { Repository } from '../repository.ts';
import { snapshot } from './capture.ts';
import { placeOf } from './place.ts';
import { withShadow } from './shadow.ts';
import { stashesOf } from './stashes.ts';
import type { WorktreeState } from './state.ts';

export interface WorktreeStateRequest {
  readonly repository: Repository;
  /** The top of a worktree. */
  readonly folder: string;
  /** A folder for the objects that the state names and the repository does not have. It gets none. */
  readonly objectsDir: string;
}

/**
 * How a worktree stands. Nothing of it is changed, not even its index. Not in it: what git ignores, modes other than the
 * x bit, times, reflogs and settings. Throws CAPTURE_REFUSED if another repository is inside, or if a merge, rebase,
 * cherry-pick or revert is unfinished.
 */
export const worktreeState = ({
  repository,
  folder,
  objectsDir,
}: WorktreeStateRequest): Promise<WorktreeState> =>
  withShadow(placeOf(repository, folder), { objectsDir }, snapshot);

/** What a commit holds never changes, and many workspaces begin with the same one. */
const treesOfCommits = new Map<string, Promise<string>>();

/** The state of a worktree in which a commit was just checked out. Asks git once for each commit. */
export async function stateOfCommit(request: {
  readonly repository: Repository;
  readonly commit: string;
  readonly branch: string | null;
}): Promise<WorktreeState> {
  const { repository, commit, branch } = request;
  const known = treesOfCommits.get(commit);
  const asked =
    known ?? repository.git.line(['rev-parse', '--verify', '--end-of-options', `${commit}^{tree}`]);
  if (known === undefined) treesOfCommits.set(commit, asked);
  const tree = await asked.catch(error => {
    treesOfCommits.delete(commit);
    throw error;
  });
  return {
    head: { commit, branch },
    tree,
    index: { tree, intentToAdd: [] },
    stashes: await stashesOf(repository),
    emptyFolders: [],
    refs: {},
  };
}

/**
 * The state of a worktree whose every change somebody then committed: the files of the commit, on the commit before. The
 * commit itself if it is not by that author, because then there was nothing left to commit.
 */
export async function stateBeforeCommit(request: {
  readonly repository: Repository;
  readonly commit: string;
  readonly branch: string | null;
  readonly author: string;
}): Promise<WorktreeState> {
  const { repository, commit, branch, author } = request;
  const args = ['show', '--no-patch', '--format=%H %T %ae', commit, `${commit}^`, '--'];
  const { code, stdout } = await repository.git.run(args);
  const [own = '', parent = ''] = stdout.split('\n');
  const [, tree = '', email] = own.split(' ');
  const [parentCommit = '', parentTree = ''] = parent.split(' ');
  const state = await stateOfCommit({ repository, commit, branch });
  if (code !== 0 || email !== author) return state;
  return {
    ...state,
    head: { commit: parentCommit, branch },
    tree,
    index: { tree: parentTree, intentToAdd: [] },
  };
}
