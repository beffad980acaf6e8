import { spawnSync } from 'node:child_process';
import type { Git } from './git.ts';
import { type Environment, gitArguments, gitEnvironment } from './git-environment.ts';

/** Prints nothing if none of the files, as they are called from the top, differs from what is checked out. */
const statusOf = (files: readonly string[]): readonly string[] => [
  ...['status', '--porcelain=v2', '-z', '--no-renames', '--untracked-files=all', '--'],
  ...files.map(file => `:(top,literal)${file}`),
];

/** Whether any of the files has changes that are not committed. At least one has to be named. */
export const anyChanged = async (git: Git, files: readonly string[]): Promise<boolean> =>
  (await git.ok(statusOf(files))) !== '';

/** The same for somebody who decides at once. Whatever git cannot tell counts as unchanged: `anyChanged` throws it. */
export function anyChangedNow(
  { cwd, env }: { readonly cwd: string; readonly env: Environment },
  files: readonly string[],
): boolean {
  const { status, stdout } = spawnSync('git', [...gitArguments('run'), ...statusOf(files)], {
    cwd,
    env: gitEnvironment(env, {}),
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return status === 0 && stdout.length > 0;
}
