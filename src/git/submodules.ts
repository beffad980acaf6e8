import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { namesIn } from './files.ts';
import type { Git } from './git.ts';

/**
 * Submodules that were cloned into a worktree have their git folder inside of its own, and are gone with it. Gives the
 * names of those with commits that no remote branch has.
 */
export async function submodulesWithOwnCommits(git: Git, gitDir: string): Promise<readonly string[]> {
  const top = join(gitDir, 'modules');
  const own: string[] = [];
  for (const module of gitDirsBelow(top)) {
    const inside = git.with({ cwd: module, env: { GIT_DIR: module } });
    const { code, stdout } = await inside.run([
      ...['rev-list', '--count', '--all', 'HEAD'],
      ...['--not', '--remotes'],
    ]);
    // One that cannot be asked is taken for one that has some.
    if (code !== 0 || Number(stdout) > 0) own.push(relative(top, module));
  }
  return own;
}

/** Names of submodules hold slashes, and submodules have submodules. */
function gitDirsBelow(folder: string): readonly string[] {
  return namesIn(folder).flatMap(name => {
    const path = join(folder, name);
    const isGitDir = existsSync(join(path, 'HEAD')) && existsSync(join(path, 'objects'));
    return isGitDir ? [path, ...gitDirsBelow(join(path, 'modules'))] : gitDirsBelow(path);
  });
}
