import { copyFileSync, statSync, utimesSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../process/index.ts';
import { hasCode } from './files.ts';
import type { Git } from './git.ts';

/** Runs the body with a copy of the index, so that what it stages does not show in the worktree. */
export async function withScratchIndex<T>(git: Git, body: (scratch: Git) => Promise<T>): Promise<T> {
  const index = await git.line(['rev-parse', '--path-format=absolute', '--git-path', 'index']);
  const folder = temporaryFolder('index');
  const copy = join(folder, 'index');
  try {
    copyIndex(index, copy);
    return await body(git.with({ env: { GIT_INDEX_FILE: copy } }));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Copies an index together with its time. Git reads a file again only if the index is not younger than the entry of the
 * file, so in a younger copy it would miss a change made in the second of the checkout.
 */
export function copyIndex(index: string, copy: string): void {
  try {
    const { mtimeMs } = statSync(index);
    copyFileSync(index, copy);
    // Whole seconds, rounded down: a copy that looks too old costs time, one that looks too young misses changes.
    const seconds = Math.floor(mtimeMs / 1000);
    utimesSync(copy, seconds, seconds);
  } catch (error) {
    // There is no index before the first `git add`.
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}

/** Lists untracked files that git does not ignore. A name that ends with a slash is another repository. */
export async function untrackedFiles(git: Git): Promise<readonly string[]> {
  const output = await git.ok(['ls-files', '-z', '--others', '--exclude-standard'], { encoding: 'bytes' });
  return output.split('\0').filter(name => name !== '');
}
