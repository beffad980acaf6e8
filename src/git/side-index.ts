import { copyFileSync, statSync, utimesSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasCode } from './files.ts';
import type { Git } from './git.ts';

/** Runs the body with a git that has a copy of the index, so that nothing done to it is seen in the worktree. */
export async function withSideIndex<T>(git: Git, body: (side: Git) => Promise<T>): Promise<T> {
  const index = await git.line(['rev-parse', '--path-format=absolute', '--git-path', 'index']);
  const folder = await mkdtemp(join(tmpdir(), 'reprise-index-'));
  const copy = join(folder, 'index');
  try {
    copyIndex(index, copy);
    return await body(git.with({ env: { GIT_INDEX_FILE: copy } }));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * The copy is as old as the index. Git reads a file again only if the index is not younger than its entry; in a copy that
 * looks younger, a change would be missed that came in the second of the checkout and left the size as it was.
 */
export function copyIndex(index: string, copy: string): void {
  try {
    const { mtimeMs } = statSync(index);
    copyFileSync(index, copy);
    setAge(copy, mtimeMs);
  } catch (error) {
    // Before the first `git add` there is none.
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}

/**
 * Git takes what an index says about a file for granted if the index is younger than the file: it reads none again. Only
 * where the content is taken from the index, or files are compared in another way.
 */
export const trustIndex = (index: string): void => setAge(index, Date.now() + 60_000);

/** In whole seconds, as most builds of git compare them, and rather too old than too young. */
export function setAge(file: string, mtimeMs: number): void {
  const seconds = Math.floor(mtimeMs / 1000);
  utimesSync(file, seconds, seconds);
}

/** Untracked files that git does not ignore. Names that end with a slash are repositories of their own. */
export async function untrackedFiles(git: Git): Promise<readonly string[]> {
  const output = await git.ok(['ls-files', '-z', '--others', '--exclude-standard'], { encoding: 'bytes' });
  return output.split('\0').filter(name => name !== '');
}
