import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Git } from './git.ts';
import { hasCode } from './small-files.ts';

/** Runs the body with a git that has a copy of the index, so that nothing done to it is seen in the worktree. */
export async function withSideIndex<T>(git: Git, body: (side: Git) => Promise<T>): Promise<T> {
  const index = await git.line(['rev-parse', '--path-format=absolute', '--git-path', 'index']);
  const folder = await mkdtemp(join(tmpdir(), 'reprise-index-'));
  const copy = join(folder, 'index');
  try {
    await copyFile(index, copy).catch(error => {
      // Before the first `git add` there is none.
      if (!hasCode(error, 'ENOENT')) throw error;
    });
    return await body(git.with({ env: { GIT_INDEX_FILE: copy } }));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Untracked files that git does not ignore. Names that end with a slash are repositories of their own. */
export async function untrackedFiles(git: Git): Promise<readonly string[]> {
  const output = await git.ok(['ls-files', '-z', '--others', '--exclude-standard'], { encoding: 'bytes' });
  return output.split('\0').filter(name => name !== '');
}
