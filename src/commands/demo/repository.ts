import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { RepriseError } from '../../core/errors.ts';

export type Files = Readonly<Record<string, string>>;

/** Makes a real repository with these files. Throws SPAWN_FAILED. */
export function makeRepository(folder: string, files: Files): void {
  const git = gitIn(folder);
  git('init', '--quiet', '--initial-branch=main');
  git('config', 'user.name', 'Demo');
  git('config', 'user.email', 'demo@example.com');
  commitFiles(folder, { files, message: 'Greet people' });
}

/** Writes the files and commits everything. Throws SPAWN_FAILED. */
export function commitFiles(
  folder: string,
  { files, message }: { readonly files: Files; readonly message: string },
): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const git = gitIn(folder);
  git('add', '.');
  git('-c', 'commit.gpgsign=false', 'commit', '--quiet', '--no-verify', '-m', message);
}

/** What is on main, the newest first: a line for each commit. */
export const logOf = (folder: string): readonly string[] =>
  gitIn(folder)('log', '--format=  %h %s', 'main').trimEnd().split('\n');

const gitIn =
  (folder: string) =>
  (...args: readonly string[]): string => {
    try {
      return execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' });
    } catch (cause) {
      throw new RepriseError('SPAWN_FAILED', 'the demo needs git, which could not be run', {
        cause,
        hint: 'install git, then try again',
      });
    }
  };
