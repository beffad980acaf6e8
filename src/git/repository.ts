import { lstatSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { RepriseError } from '../core/index.ts';
import { readIfThere } from './files.ts';
import { createGit, type Git, type GitOptions, lastLines } from './git.ts';

/** A repository as Reprise sees it: the checkout that it was opened from, and what all its checkouts share. */
export interface Repository {
  /** Top of the checkout; `undefined` in a bare repository. */
  readonly root: string | undefined;
  /** The git folder that all worktrees share. */
  readonly commonDir: string;
  /** Runs at the root, or in the git folder of a bare repository. */
  readonly git: Git;
}

/** Finds the repository that a folder is in. Throws NOT_A_REPOSITORY, GIT_NOT_FOUND. */
export async function openRepository(options: GitOptions): Promise<Repository> {
  const git = createGit(options);
  const plain = plainRepositoryAt(options.cwd);
  if (plain) return { ...plain, git: git.with({ cwd: plain.root }) };
  const both = await git.run(['rev-parse', '--path-format=absolute', '--git-common-dir', '--show-toplevel']);
  const [first, second, ...more] = withoutNewline(both.stdout).split('\n');
  if (both.code === 0 && first !== undefined && second !== undefined && more.length === 0)
    return { root: second, commonDir: first, git: git.with({ cwd: second }) };
  // In a bare repository, inside the git folder itself, or with newlines in its path.
  return openUnusual(git);
}

async function openUnusual(git: Git): Promise<Repository> {
  const common = await git.run(['rev-parse', '--path-format=absolute', '--git-common-dir']);
  if (common.code !== 0) {
    throw new RepriseError('NOT_A_REPOSITORY', `${git.cwd}: ${lastLines(common.stderr)}`, {
      hint: 'run it inside a git repository, or make one: git init',
    });
  }
  const commonDir = withoutNewline(common.stdout);
  const top = await git.run(['rev-parse', '--path-format=absolute', '--show-toplevel']);
  const root = top.code === 0 ? withoutNewline(top.stdout) : undefined;
  return { root, commonDir, git: git.with({ cwd: root ?? commonDir }) };
}

/** The id of a commit; `undefined` if the name means none. Any name is safe. */
export async function resolveCommit(git: Git, name: string): Promise<string | undefined> {
  const { code, stdout } = await git.run([
    'rev-parse',
    '--verify',
    '--quiet',
    '--end-of-options',
    `${name}^{commit}`,
  ]);
  return code === 0 ? withoutNewline(stdout) : undefined;
}

/** Only the last one: paths may hold newlines of their own. */
const withoutNewline = (text: string): string => text.replace(/\n$/, '');

/** Where a checkout and its git folder are. */
interface PlainRepository {
  readonly root: string;
  readonly commonDir: string;
}

/**
 * The repository whose top a folder is, if it is laid out as `git init` does it and belongs to whoever asks: that is
 * what git itself would find. `undefined` means that git has to be asked.
 */
export function plainRepositoryAt(folder: string): PlainRepository | undefined {
  try {
    const root = realpathSync(folder);
    const commonDir = join(root, '.git');
    const parts = [root, commonDir, join(commonDir, 'objects'), join(commonDir, 'refs')];
    const isOwn = parts.map(path => lstatSync(path)).every(stat => stat.isDirectory() && isOurs(stat.uid));
    return isOwn && hasPlainSettings(commonDir) && hasHead(commonDir) ? { root, commonDir } : undefined;
  } catch {
    return undefined;
  }
}

/** Where the first checkout of a repository is; `undefined` means that git has to be asked. */
export const plainRootOf = (commonDir: string): string | undefined => {
  const root = dirname(commonDir);
  return commonDir === join(root, '.git') && hasPlainSettings(commonDir) ? root : undefined;
};

const isOurs = (uid: number): boolean => uid === process.geteuid?.();

const hasHead = (commonDir: string): boolean =>
  /^(ref: refs\/|[0-9a-f]{40})/.test(readIfThere(join(commonDir, 'HEAD')) ?? '');

/** Settings, or settings elsewhere, that could have files, refs or objects in another place. */
const unusual =
  /\b(include|includeif|extensions|worktree|sparsecheckout)\b|\bbare\b(?!\s*=\s*false\s*$)|\brepositoryformatversion\b(?!\s*=\s*0\s*$)/im;

function hasPlainSettings(commonDir: string): boolean {
  const config = readIfThere(join(commonDir, 'config'));
  return (
    config !== undefined && !unusual.test(config) && readIfThere(join(commonDir, 'commondir')) === undefined
  );
}
