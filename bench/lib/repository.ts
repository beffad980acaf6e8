import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Environment without the git settings of the user. */
export const repositoryEnvironment = {
  PATH: process.env['PATH'],
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: 'Ann',
  GIT_AUTHOR_EMAIL: 'ann@example.com',
  GIT_COMMITTER_NAME: 'Ann',
  GIT_COMMITTER_EMAIL: 'ann@example.com',
};

/** Creates a repository with one commit: the given number of files of a few kilobytes, in twenty folders. */
export function makeRepository(folder: string, files: number): string {
  const root = join(folder, 'repository');
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, env: repositoryEnvironment });
  for (let index = 0; index < files; index++) {
    const below = join(root, 'src', `part-${index % 20}`);
    mkdirSync(below, { recursive: true });
    const lines = 1 + ((index * 37) % 200);
    writeFileSync(join(below, `file-${index}.ts`), `export const value${index} = ${index};\n`.repeat(lines));
  }
  git('init', '--quiet', '--initial-branch=main');
  git('add', '--all');
  git('commit', '--quiet', '--message=Begin');
  return root;
}
