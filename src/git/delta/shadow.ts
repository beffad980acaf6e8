import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import { hasCode, readIfThere } from '../files.ts';
import type { Git } from '../git.ts';
import { printable, quotedPath, shellWord } from '../names.ts';
import type { Repository } from '../repository.ts';
import { gitInside, ownRepository, realPath, worktreeAt } from '../workspace/entries.ts';

/** A git folder of our own beside that of a worktree: what is done to its index nobody sees. */
export interface Shadow {
  readonly place: ShadowedWorktree;
  readonly index: string;
  /** With the files of the worktree. */
  readonly git: Git;
  /** Without a worktree, and so without attributes of files in one. */
  readonly bare: Git;
}

/** Bytes go in and out as they are, and differences are shown and merged in one way everywhere. */
const attributes = '* -text -filter -ident !working-tree-encoding !diff !merge !export-subst\n';

interface ShadowOptions {
  /** Where new objects go; into the repository itself by default. */
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

/** Runs the body with the `bare` git of a shadow, where no worktree is needed. */
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
  const dir = mkdtempSync(join(tmpdir(), 'reprise-shadow-'));
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

/** Where git finds objects, and where it puts new ones. */
export function objectEnvironment(
  objects: string,
  objectsDir: string | undefined,
): Readonly<Record<string, string>> {
  const own = { GIT_NO_REPLACE_OBJECTS: '1' };
  if (objectsDir === undefined) return { ...own, GIT_OBJECT_DIRECTORY: objects };
  mkdirSync(objectsDir, { recursive: true });
  return { ...own, GIT_OBJECT_DIRECTORY: objectsDir, GIT_ALTERNATE_OBJECT_DIRECTORIES: quotedPath(objects) };
}

/** Settings of the repository about files and what to ignore hold in its shadow too. */
const configOf = ({ repository, oidBytes }: ObjectStore): string =>
  [
    `[include]\n\tpath = ${quotedPath(join(repository.commonDir, 'config'))}`,
    `[core]\n\tbare = true\n\tuntrackedCache = false\n\trepositoryformatversion = ${oidBytes === 32 ? 1 : 0}`,
    ...(oidBytes === 32 ? ['[extensions]\n\tobjectFormat = sha256'] : []),
    '',
  ].join('\n');

function copyIfThere(from: string, to: string): void {
  try {
    copyFileSync(from, to);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}

/** Where a repository keeps its objects, and how long their ids are. */
interface ObjectStore {
  readonly repository: Repository;
  readonly objects: string;
  readonly oidBytes: 20 | 32;
}

/** One worktree of a repository, and where git keeps what belongs to it. */
export interface ShadowedWorktree extends ObjectStore {
  readonly folder: string;
  readonly gitDir: string;
  /** Bound to the worktree. */
  readonly git: Git;
}

export function objectStoreOf(repository: Repository): ObjectStore {
  const config = readIfThere(join(repository.commonDir, 'config')) ?? '';
  return {
    repository,
    objects: join(repository.commonDir, 'objects'),
    oidBytes: /^\s*objectformat\s*=\s*sha256\s*$/im.test(config) ? 32 : 20,
  };
}

/** Throws CAPTURE_REFUSED if the folder is not the top of a worktree of the repository. */
export function shadowedWorktreeOf(repository: Repository, path: string): ShadowedWorktree {
  const folder = realPath(path);
  const entry = worktreeAt(repository, folder);
  const isMain = repository.root !== undefined && realPath(repository.root) === folder;
  if (entry === undefined && !isMain) {
    throw new RepriseError(
      'CAPTURE_REFUSED',
      `${path} is not the top of a worktree of ${repository.commonDir}`,
      {
        hint: 'name the folder in which the session worked',
      },
    );
  }
  if (entry !== undefined && ownRepository(folder).length > 0) throw embedded(folder, ['.git']);
  return {
    ...objectStoreOf(repository),
    folder,
    gitDir: entry?.gitDir ?? repository.commonDir,
    git: gitInside(repository, folder),
  };
}

/** Git keeps these while a command waits for a person to resolve conflicts. */
const unfinished: Readonly<Record<string, string>> = {
  MERGE_HEAD: 'merge',
  CHERRY_PICK_HEAD: 'cherry-pick',
  REVERT_HEAD: 'revert',
  'rebase-merge': 'rebase',
  'rebase-apply': 'rebase',
};

/** Throws CAPTURE_REFUSED in the middle of a merge, rebase, cherry-pick or revert. */
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
    { hint: `finish it, or give it up: git -C ${shellWord(folder)} ${command} --abort` },
  );

/** A state would hold only the name of a commit in it, and none of its files. */
export const embedded = (folder: string, names: readonly string[]): RepriseError =>
  new RepriseError(
    'CAPTURE_REFUSED',
    `there is another repository in ${folder}: ${names.map(printable).join(', ')}`,
    { hint: 'move it out of the worktree, have git ignore it, or remove its .git folder to keep its files' },
  );
