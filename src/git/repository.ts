import { existsSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { RepriseError } from '../core/index.ts';
import { namesIn, syncPaths } from './files.ts';
import { askGitNow, createGit, type Git, type GitOptions, type GitPlace, gitNow, lastLines } from './git.ts';

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

/** Removes the last newline only, because a path may contain newlines. */
export const withoutNewline = (text: string): string => text.replace(/\n$/, '');

/** Number of loose objects above which one pack is synced instead of each file. */
const maxLoose = 100;

/** Age above which the system has written a file to the disk by itself. */
const recentMs = 60_000;

interface NamedWork {
  /** Commits that an event is going to name, without those that `from` reaches. */
  readonly from: string;
  readonly to: string;
  /** Branch that keeps them. */
  readonly branch?: string | undefined;
  /** Git folder of a worktree whose HEAD or index names them. */
  readonly gitDir?: string | undefined;
}

/**
 * Returns when commits survive a power loss, with all of their objects and the names that lead to them. Git syncs what our
 * own commands write, but not the folders, and nothing of what an agent or the user commits.
 */
export async function makeDurable(
  { git, commonDir }: Pick<Repository, 'git' | 'commonDir'>,
  { from, to, branch, gitDir }: NamedWork,
): Promise<void> {
  const output = await git.ok(['rev-list', '--objects', '--no-object-names', `${from}..${to}`]);
  const objects = join(commonDir, 'objects');
  const ids = output.split('\n').filter(id => id !== '');
  const loose = ids.map(id => join(objects, id.slice(0, 2), id.slice(2))).filter(file => existsSync(file));
  if (loose.length > maxLoose) await packObjects(git, { ids, folder: join(objects, 'pack') });
  const files = loose.length > maxLoose ? [join(objects, 'pack')] : [...loose, ...loose.map(dirname)];
  const names = branch === undefined ? [] : foldersOfRef(commonDir, `refs/heads/${branch}`);
  await syncPaths([...files, objects, ...names, ...(gitDir === undefined ? [] : [gitDir])]);
}

/** Git syncs the pack and its index. Packing the same objects again gives the same files. */
const packObjects = (
  git: Git,
  { ids, folder }: { readonly ids: readonly string[]; readonly folder: string },
) => git.ok(['pack-objects', '--quiet', join(folder, 'pack')], { input: `${ids.join('\n')}\n` });

/** A loose ref with all folders that lead to it. */
function foldersOfRef(commonDir: string, ref: string): readonly string[] {
  const parts = ref.split('/');
  return parts.map((_, index) => join(commonDir, ...parts.slice(0, index + 1)));
}

/** Makes a branch durable that was made for a commit which is durable already. */
export const makeRefDurable = ({ commonDir }: Pick<Repository, 'commonDir'>, ref: string): Promise<void> =>
  syncPaths(foldersOfRef(commonDir, ref));

/**
 * Makes durable what was committed a moment ago. Git syncs no object of the user's commits; the next sync of our own files
 * could otherwise write the branch to the disk before the commit that it names.
 */
export async function makeRecentDurable(
  { commonDir }: Pick<Repository, 'commonDir'>,
  ref?: string,
): Promise<void> {
  const objects = join(commonDir, 'objects');
  const folders = recentIn(objects).filter(({ name }) => /^[0-9a-f]{2}$/.test(name));
  const files = folders.flatMap(({ path }) => recentIn(path));
  if (files.length === 0) return;
  const known = durableObjects.get(objects);
  const added = files.filter(({ version }) => !known?.has(version));
  await syncPaths(added.map(({ path }) => path));
  durableObjects.set(objects, new Set(files.map(({ version }) => version)));
  const parents = added.length === 0 ? [] : [...added.map(({ path }) => dirname(path)), objects];
  await syncPaths([...parents, ...(ref === undefined ? [] : foldersOfRef(commonDir, ref))]);
}

/** Recent objects that this process has synced, by folder, so that each of them is synced once. */
const durableObjects = new Map<string, ReadonlySet<string>>();

/**
 * Lists what is in a folder and has changed recently, each with a text that is different if it was made again. Git sets the
 * time of change of an object that it would write again, not that of birth.
 */
const recentIn = (folder: string) =>
  namesIn(folder).flatMap(name => {
    const path = join(folder, name);
    const { mtimeMs = 0, birthtimeMs, ino } = statSync(path, { throwIfNoEntry: false }) ?? {};
    return Math.abs(Date.now() - mtimeMs) < recentMs
      ? { name, path, version: `${path} ${ino} ${birthtimeMs}` }
      : [];
  });

/**
 * Removes objects that a power loss left empty. Git takes an empty file for the object, and would not write it again. No
 * command leaves an empty file under the name of an object.
 */
export function removeEmptyObjects({ commonDir }: Pick<Repository, 'commonDir'>): void {
  const objects = join(commonDir, 'objects');
  for (const name of namesIn(objects).filter(each => /^[0-9a-f]{2}$/.test(each))) {
    const files = namesIn(join(objects, name)).filter(each => /^[0-9a-f]{38,}$/.test(each));
    for (const file of files.map(each => join(objects, name, each)))
      if (statSync(file, { throwIfNoEntry: false })?.size === 0) rmSync(file, { force: true });
  }
}
