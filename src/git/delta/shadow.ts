import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasCode } from '../files.ts';
import type { Git } from '../git.ts';
import { quotedPath } from '../words.ts';
import type { ObjectStore, Place } from './place.ts';

/** A git folder of our own beside that of a worktree: what is done to its index nobody sees. */
export interface Shadow {
  readonly place: Place;
  readonly index: string;
  /** With the files of the worktree. */
  readonly git: Git;
  /** Without a worktree, and so without attributes of files in one. */
  readonly bare: Git;
}

/** Bytes go in and out as they are, and differences are shown and merged in one way everywhere. */
const attributes = '* -text -filter -ident !working-tree-encoding !diff !merge !export-subst\n';

export interface ShadowOptions {
  /** Where new objects go; into the repository itself by default. */
  readonly objectsDir?: string | undefined;
}

export const withShadow = <T>(
  place: Place,
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
