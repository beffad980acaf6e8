import { constants } from 'node:fs';
import { copyFile, lstat, mkdir, readlink, symlink } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { hasCode, readIfThere } from '../files.ts';
import type { Git } from '../git.ts';

export interface IncludeOptions {
  readonly git: Git;
  /** Checkout to copy from. */
  readonly root: string;
  /** Worktree to copy to. */
  readonly target: string;
  /** Patterns in addition to those in `.worktreeinclude`. */
  readonly patterns?: readonly string[] | undefined;
}

const includeFile = '.worktreeinclude';

/**
 * Copies ignored files that match `.worktreeinclude` (in the syntax of `.gitignore`), such as `.env`. Existing files stay,
 * and nothing is written outside the target. Returns the copied paths.
 */
export async function copyIncluded({ git, root, target, patterns = [] }: IncludeOptions): Promise<string[]> {
  const hasFile = readIfThere(join(root, includeFile)) !== undefined;
  if (!hasFile && patterns.length === 0) return [];
  const from = git.with({ cwd: root });
  const matching = await from.ok(
    [
      'ls-files',
      '-z',
      '--others',
      '--ignored',
      ...patterns.map(pattern => `--exclude=${pattern}`),
      ...(hasFile ? [`--exclude-from=${includeFile}`] : []),
    ],
    { encoding: 'bytes' },
  );
  // A name that ends with a slash is another repository, such as a workspace.
  const files = matching.split('\0').filter(name => name !== '' && !name.endsWith('/'));
  const ignored = files.length === 0 ? [] : await onlyIgnored(from, files);
  const copied: string[] = [];
  for (const name of ignored) if (await copyOne({ name, root, target })) copied.push(name);
  return copied.map(name => Buffer.from(name, 'latin1').toString());
}

async function onlyIgnored(git: Git, files: readonly string[]): Promise<string[]> {
  const { stdout } = await git.run(['check-ignore', '-z', '--stdin'], {
    input: files.join('\0'),
    encoding: 'bytes',
  });
  return stdout.split('\0').filter(name => name !== '' && !name.startsWith('.reprise/'));
}

interface Copy {
  /** Path with one character per byte. */
  readonly name: string;
  readonly root: string;
  readonly target: string;
}

async function copyOne({ name, root, target }: Copy): Promise<boolean> {
  const from = pathOf(root, name);
  const to = pathOf(target, name);
  try {
    if (!(await makeFolders(target, dirname(name)))) return false;
    if ((await lstat(from)).isSymbolicLink()) await symlink(await readlink(from), to);
    else await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    return true;
  } catch (error) {
    // The target exists, or the file was deleted meanwhile.
    if (['EEXIST', 'ENOTDIR', 'ENOENT', 'EISDIR'].some(code => hasCode(error, code))) return false;
    throw error;
  }
}

/** Returns `false` if a folder is a symbolic link, because in the commit of the worktree it may lead elsewhere. */
async function makeFolders(target: string, name: string): Promise<boolean> {
  const parts = name === '.' ? [] : name.split('/');
  for (const [index] of parts.entries()) {
    const folder = pathOf(target, parts.slice(0, index + 1).join('/'));
    await mkdir(folder).catch(error => {
      if (!hasCode(error, 'EEXIST')) throw error;
    });
    if (!(await lstat(folder)).isDirectory()) return false;
  }
  return true;
}

const pathOf = (folder: string, name: string): Buffer =>
  Buffer.concat([Buffer.from(`${folder}${sep}`), Buffer.from(name, 'latin1')]);
