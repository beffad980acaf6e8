import type { Git } from './git.ts';
import { gitInside } from './git-inside.ts';
import type { Repository } from './repository.ts';
import { untrackedFiles, withSideIndex } from './side-index.ts';

export interface DiffRequest {
  readonly repository: Repository;
  /** A commit. */
  readonly base: string;
  /** A commit, or the folder of a worktree with all that is uncommitted in it. */
  readonly head: string | { readonly workspace: string };
  /** Files and folders below the top, taken as they are written; all of them by default. */
  readonly paths?: readonly string[] | undefined;
  /** A line for each file instead of what changed in it. */
  readonly stat?: boolean | undefined;
  readonly color?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The differences as `git diff` prints them, whatever the user's settings are: no program of the repository runs for
 * them. The worktree stays as it is, and so does its index. Throws GIT_FAILED if the base or the head is no commit.
 */
export async function diffOf({ repository, head, ...request }: DiffRequest): Promise<string> {
  if (typeof head === 'string') return print(repository.git, [request.base, head], request);
  const git = gitInside(repository, head.workspace);
  const untracked = (await untrackedFiles(git)).filter(name => !name.endsWith('/'));
  if (untracked.length === 0) return print(git, [request.base], request);
  return withSideIndex(git, async side => {
    await announce(side, untracked);
    return print(side, [request.base], request);
  });
}

/** Git compares only files that it has been told of. */
async function announce(git: Git, names: readonly string[]): Promise<void> {
  const args = ['add', '--intent-to-add', '--pathspec-from-file=-', '--pathspec-file-nul'];
  await git
    .with({ env: { GIT_LITERAL_PATHSPECS: '1' } })
    .ok(args, { input: names.join('\0'), encoding: 'bytes' });
}

function print(
  git: Git,
  commits: readonly string[],
  { paths = [], stat = false, color = false, signal }: Omit<DiffRequest, 'repository' | 'head'>,
): Promise<string> {
  const args = [
    'diff',
    '--no-ext-diff',
    '--no-textconv',
    '--no-relative',
    '--find-renames',
    '--src-prefix=a/',
    '--dst-prefix=b/',
    '--submodule=short',
    color ? '--color=always' : '--color=never',
    stat ? '--stat' : '--patch',
    '--end-of-options',
    ...commits,
    '--',
    ...paths,
  ];
  return git.with({ env: { GIT_LITERAL_PATHSPECS: '1' } }).ok(args, { signal });
}
