import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { replaceFile } from './files.ts';
import type { Git } from './git.ts';
import type { Repository } from './repository.ts';
import { worktreeAt } from './workspace/entries.ts';

/**
 * Git in a workspace, bound to its private git folder. An agent may have removed the `.git` of its folder, or begun a
 * repository of its own there; git would then find the checkout of the user further up, and change that.
 */
export function gitInside(repository: Repository, path: string): Git {
  const entry = worktreeAt(repository, path);
  const env = entry
    ? { GIT_DIR: entry.gitDir, GIT_WORK_TREE: entry.path }
    : { GIT_CEILING_DIRECTORIES: dirname(path) };
  return repository.git.with({ cwd: path, env });
}

/** Leads whoever works in a workspace to its branch again, if the `.git` that does so was removed. */
export function restoreLink(repository: Repository, path: string): void {
  const link = join(path, '.git');
  if (!existsSync(path) || existsSync(link)) return;
  const entry = worktreeAt(repository, path);
  if (entry) replaceFile(link, `gitdir: ${entry.gitDir}\n`);
}

/** `.git/` if the folder has become a repository of its own, whose commits are nowhere else. */
export function ownRepository(path: string): readonly string[] {
  const isFolder = statSync(join(path, '.git'), { throwIfNoEntry: false })?.isDirectory() ?? false;
  return isFolder ? ['.git/'] : [];
}
