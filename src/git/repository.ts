import { RepriseError } from '../core/index.ts';
import { createGit, type Git, type GitOptions, type GitPlace, gitNow, lastLines } from './git.ts';

/** A repository, opened from one of its checkouts. */
export interface Repository {
  /** Top of the checkout; `undefined` in a bare repository. */
  readonly root: string | undefined;
  /** Git folder that all worktrees share. */
  readonly commonDir: string;
  /** Git at the root, or in the git folder of a bare repository. */
  readonly git: Git;
}

/** Finds the repository that contains a folder. Throws NOT_A_REPOSITORY or GIT_NOT_FOUND. */
export async function openRepository(options: GitOptions): Promise<Repository> {
  const git = createGit(options);
  const both = await git.run(['rev-parse', '--path-format=absolute', '--git-common-dir', '--show-toplevel']);
  const [first, second, ...more] = withoutNewline(both.stdout).split('\n');
  if (both.code === 0 && first !== undefined && second !== undefined && more.length === 0)
    return { root: second, commonDir: first, git: git.with({ cwd: second }) };
  // A bare repository, a folder inside the git folder, or a path that contains newlines.
  return openUnusual(git);
}

async function openUnusual(git: Git): Promise<Repository> {
  const common = await git.run(['rev-parse', '--path-format=absolute', '--git-common-dir']);
  if (common.code !== 0) {
    throw new RepriseError('NOT_A_REPOSITORY', `${git.cwd}: ${lastLines(common.stderr)}`, {
      hint: 'run it inside a git repository, or make one: git init',
    });
  }
  const commonDir = withoutNewline(common.stdout);
  const top = await git.run(['rev-parse', '--path-format=absolute', '--show-toplevel']);
  const root = top.code === 0 ? withoutNewline(top.stdout) : undefined;
  return { root, commonDir, git: git.with({ cwd: root ?? commonDir }) };
}

/** Returns the git folder that all worktrees share, synchronously; `undefined` outside a repository. */
export const commonDirNow = (place: GitPlace): string | undefined =>
  gitNow(place, ['rev-parse', '--path-format=absolute', '--git-common-dir']);

/** Removes the last newline only, because a path may contain newlines. */
export const withoutNewline = (text: string): string => text.replace(/\n$/, '');
