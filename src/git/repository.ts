import { basename, dirname, resolve } from 'node:path';
import { RepriseError } from '../core/index.ts';
import {
  askGitNow,
  createGit,
  type Git,
  type GitOptions,
  type GitPlace,
  gitNow,
  lastLines,
  withoutNewline,
} from './git.ts';

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

/** A folder and the repository around it. */
export interface RepositoryLocation {
  readonly kind: 'inside';
  /** Git folder that all worktrees share. */
  readonly commonDir: string;
  /** Path of the folder relative to the top of its worktree; `.` at the top, and in a bare repository. */
  readonly folder: string;
  readonly worktree: 'main' | 'linked' | 'none';
}

type Located =
  | RepositoryLocation
  | { readonly kind: 'outside' }
  /** There is a repository, but git is missing or does not accept it. */
  | { readonly kind: 'refused'; readonly why: string };

/** Finds the repository around a folder, synchronously. */
export function locateNow(place: GitPlace): Located {
  const args = ['--git-common-dir', '--git-dir', '--is-inside-work-tree', '--show-prefix'];
  const ask = (asked: readonly string[]) =>
    askGitNow(place, ['rev-parse', '--path-format=absolute', ...asked]);
  const all = ask(args);
  if (!all.ok) {
    if (all.isOutside) return { kind: 'outside' };
    return { kind: 'refused', why: all.why };
  }
  const lines = all.output.split('\n');
  // A path that contains newlines is asked for separately.
  const [commonDir = '', gitDir = '', isInside, prefix = ''] =
    lines.length === args.length
      ? lines
      : args.map(each => {
          const one = ask([each]);
          return one.ok ? one.output : '';
        });
  const worktree = isInside !== 'true' ? 'none' : gitDir === commonDir ? 'main' : 'linked';
  return { kind: 'inside', commonDir, folder: prefix.replace(/\/$/, '') || '.', worktree };
}

/**
 * Returns the top of the main worktree, seen from a linked one. `undefined` if the repository is bare, or its git folder
 * is elsewhere and does not say where its worktree is.
 */
export function mainWorktreeNow({ commonDir }: Pick<RepositoryLocation, 'commonDir'>, env: GitPlace['env']) {
  const setting = (name: string, type: string) =>
    gitNow({ cwd: commonDir, env }, ['config', '--local', `--type=${type}`, '--get', name]);
  const configured = setting('core.worktree', 'path');
  if (configured !== undefined) return resolve(commonDir, configured);
  return basename(commonDir) === '.git' && setting('core.bare', 'bool') !== 'true'
    ? dirname(commonDir)
    : undefined;
}
