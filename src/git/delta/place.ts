import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { RepriseError } from '../../core/errors.ts';
import { readIfThere } from '../files.ts';
import type { Git } from '../git.ts';
import { gitInside, ownRepository } from '../git-inside.ts';
import type { Repository } from '../repository.ts';
import { printable, shellWord } from '../words.ts';
import { realPath, worktreeAt } from '../workspace/entries.ts';

/** Where a repository keeps its objects, and how long their ids are. */
export interface ObjectStore {
  readonly repository: Repository;
  readonly objects: string;
  readonly oidBytes: 20 | 32;
}

/** One worktree of a repository, and where git keeps what belongs to it. */
export interface Place extends ObjectStore {
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
export function placeOf(repository: Repository, path: string): Place {
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
export function refuseUnfinished({ gitDir, folder }: Place): void {
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
