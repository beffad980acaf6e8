import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import { temporaryFolder } from '../../process/index.ts';
import { hasCode } from '../files.ts';
import type { Git } from '../git.ts';
import { printable, quotedPath, shellWord } from '../names.ts';
import type { Repository } from '../repository.ts';
import { gitInside, ownRepository, realPath, worktreeGitOf } from '../workspace/entries.ts';

/** Private git folder for a worktree. Changes to its index do not affect the worktree. */
export interface Shadow {
  readonly place: ShadowedWorktree;
  readonly index: string;
  /** Git with the files of the worktree. */
  readonly git: Git;
  /** Git without a worktree, and thus without its `.gitattributes`. */
  readonly bare: Git;
}

/** Turns off all conversions of files, and custom diff and merge drivers. */
const attributes = '* -text -filter -ident !working-tree-encoding !diff !merge !export-subst\n';

interface ShadowOptions {
  /** Folder for new objects. Defaults to the repository itself. */
  readonly objectsDir?: string | undefined;
}

export const withShadow = <T>(
  place: ShadowedWorktree,
  { objectsDir }: ShadowOptions,
  body: (shadow: Shadow) => Promise<T>,
): Promise<T> =>
  withGitFolder(place, objectsDir, env =>
    body({
      place,
      index: env.GIT_INDEX_FILE,
      git: place.git.with({ cwd: place.folder, env: { ...env, GIT_WORK_TREE: place.folder } }),
      bare: bareGit(place, env),
    }),
  );

/** Runs the body with the `bare` git of a shadow, without a worktree. */
export const withBareShadow = <T>(
  store: ObjectStore,
  { objectsDir }: ShadowOptions,
  body: (bare: Git) => Promise<T>,
): Promise<T> => withGitFolder(store, objectsDir, env => body(bareGit(store, env)));

type FolderEnvironment = Readonly<Record<'GIT_DIR' | 'GIT_INDEX_FILE', string>>;

const bareGit = ({ repository }: ObjectStore, env: FolderEnvironment): Git =>
  repository.git.with({ cwd: env.GIT_DIR, env: { ...env, GIT_WORK_TREE: undefined } });

async function withGitFolder<T>(
  store: ObjectStore,
  objectsDir: string | undefined,
  body: (env: FolderEnvironment) => Promise<T>,
): Promise<T> {
  const dir = temporaryFolder('shadow');
  try {
    const { commonDir } = store.repository;
    mkdirSync(join(dir, 'refs'));
    mkdirSync(join(dir, 'info'));
    writeFileSync(join(dir, 'HEAD'), 'ref: refs/heads/none\n');
    writeFileSync(join(dir, 'config'), configOf(store));
    writeFileSync(join(dir, 'info', 'attributes'), attributes);
    copyIfThere(join(commonDir, 'info', 'exclude'), join(dir, 'info', 'exclude'));
    copyIfThere(join(commonDir, 'shallow'), join(dir, 'shallow'));
    const objects = objectEnvironment(store.objects, objectsDir);
    return await body({ ...objects, GIT_DIR: dir, GIT_INDEX_FILE: join(dir, 'index') });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Returns the variables that tell git where to find objects and where to write new ones. */
export function objectEnvironment(
  objects: string,
  objectsDir: string | undefined,
): Readonly<Record<string, string>> {
  const own = { GIT_NO_REPLACE_OBJECTS: '1' };
  if (objectsDir === undefined) return { ...own, GIT_OBJECT_DIRECTORY: objects };
  mkdirSync(objectsDir, { recursive: true });
  return { ...own, GIT_OBJECT_DIRECTORY: objectsDir, GIT_ALTERNATE_OBJECT_DIRECTORIES: quotedPath(objects) };
}

/** Includes the settings of the repository, because the shadow needs those about files and ignore patterns. */
const configOf = ({ repository, format }: ObjectStore): string =>
  [
    `[include]\n\tpath = ${quotedPath(join(repository.commonDir, 'config'))}`,
    `[core]\n\tbare = true\n\tuntrackedCache = false\n\trepositoryformatversion = ${format === 'sha256' ? 1 : 0}`,
    ...(format === 'sha256' ? ['[extensions]\n\tobjectFormat = sha256'] : []),
    '',
  ].join('\n');

function copyIfThere(from: string, to: string): void {
  try {
    copyFileSync(from, to);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}

/** Object folder of a repository, and the hash of its ids. */
interface ObjectStore {
  readonly repository: Repository;
  readonly objects: string;
  /** `sha1` or `sha256`. */
  readonly format: string;
}

/** Worktree of a repository, with its private git folder. */
export interface ShadowedWorktree extends ObjectStore {
  readonly folder: string;
  readonly gitDir: string;
  /** Git that runs in the worktree. */
  readonly git: Git;
}

export const objectStoreOf = (repository: Repository, format: string): ObjectStore => ({
  repository,
  objects: join(repository.commonDir, 'objects'),
  format,
});

/** Finds a worktree. Throws CAPTURE_REFUSED if the folder is not the root of a worktree of the repository. */
export async function shadowedWorktreeOf(repository: Repository, path: string): Promise<ShadowedWorktree> {
  const folder = realPath(path);
  const found = await worktreeGitOf(repository, folder);
  const isMain = repository.root !== undefined && realPath(repository.root) === folder;
  if (!isMain && ownRepository(folder).length > 0) throw embedded(folder, ['.git']);
  if (found === undefined) {
    throw new RepriseError(
      'CAPTURE_REFUSED',
      `${path} is not the root of a worktree of ${repository.commonDir}`,
      {
        hint: 'name the folder that the session worked in',
      },
    );
  }
  const { gitDir, objectFormat } = found;
  return { ...objectStoreOf(repository, objectFormat), folder, gitDir, git: gitInside(repository, folder) };
}

/** Files that git keeps while a command waits for conflicts to be resolved. */
const unfinished: Readonly<Record<string, string>> = {
  MERGE_HEAD: 'merge',
  CHERRY_PICK_HEAD: 'cherry-pick',
  REVERT_HEAD: 'revert',
  'rebase-merge': 'rebase',
  'rebase-apply': 'rebase',
};

/** Throws CAPTURE_REFUSED if a merge, rebase, cherry-pick or revert is unfinished. */
export function refuseUnfinished({ gitDir, folder }: ShadowedWorktree): void {
  const name = Object.keys(unfinished).find(file => existsSync(join(gitDir, file)));
  if (name !== undefined) throw unfinishedError(folder, unfinished[name] ?? 'merge');
}

export const unfinishedError = (
  folder: string,
  command: string,
  files: readonly string[] = [],
): RepriseError =>
  new RepriseError(
    'CAPTURE_REFUSED',
    `a ${command} in ${folder} is unfinished${files.length > 0 ? `: ${files.map(printable).join(', ')}` : ''}`,
    { hint: `finish it or abort it: git -C ${shellWord(folder)} ${command} --abort` },
  );

/** Error for an embedded repository, of which a state would contain a commit id but no files. */
export const embedded = (folder: string, names: readonly string[]): RepriseError =>
  new RepriseError(
    'CAPTURE_REFUSED',
    `there is another repository in ${folder}: ${names.map(printable).join(', ')}`,
    { hint: 'move it out of the worktree, have git ignore it, or remove its .git folder to keep its files' },
  );
