import { appendFileSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { findUpwards } from '../project/project.ts';

export const ignoredFolders = ['.reprise/state/', '.reprise/workspaces/'];

/**
 * Keeps git from seeing what Reprise writes below `root`, without touching a file that is committed. Gives the file that
 * says so. Does nothing outside a repository or where the repository cannot be written to.
 */
export function excludeFromGit(root: string): string | undefined {
  const top = findUpwards(root, folder => existsSync(join(folder, '.git')));
  if (top === undefined) return undefined;
  try {
    const gitFolder = commonGitFolder(join(top, '.git'));
    if (!existsSync(join(gitFolder, 'HEAD'))) return undefined;
    const file = join(gitFolder, 'info', 'exclude');
    const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
    const known = new Set(before.split(/\r?\n/));
    const missing = patternsFor(relative(top, root)).filter(pattern => !known.has(pattern));
    if (missing.length === 0) return file;
    mkdirSync(dirname(file), { recursive: true });
    appendFileSync(file, `${before === '' || before.endsWith('\n') ? '' : '\n'}${missing.join('\n')}\n`);
    return file;
  } catch {
    // Runs do not depend on it; `reprise doctor` tells.
    return undefined;
  }
}

/** A linked worktree and a submodule have a file that leads to the folder; worktrees share the one of the first. */
function commonGitFolder(dotGit: string): string {
  if (statSync(dotGit).isDirectory()) return dotGit;
  const link = /^gitdir: (.*)$/m.exec(readFileSync(dotGit, 'utf8'))?.[1] ?? '';
  const folder = resolve(dirname(dotGit), link.trim());
  const common = join(folder, 'commondir');
  return existsSync(common) ? resolve(folder, readFileSync(common, 'utf8').trim()) : folder;
}

/** Patterns with a slash inside count from the top of the worktree. */
function patternsFor(folder: string): readonly string[] {
  if (folder === '') return ignoredFolders;
  const prefix = folder
    .split(sep)
    .join('/')
    .replace(/[\\*?[\]!# ]/g, '\\$&');
  return ignoredFolders.map(ignored => `/${prefix}/${ignored}`);
}
