import { existsSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { namesIn, parseRecord, readIfThere, replaceFile } from '../files.ts';
import type { Git } from '../git.ts';
import { removeIfThere } from '../lock-file.ts';
import type { Repository } from '../repository.ts';

/** What a worktree of Reprise says about itself. */
export interface WorktreeLabel {
  /** `landing`: a scratch folder that holds nothing of its own. */
  readonly kind: 'workspace' | 'landing';
  readonly base: string;
  /** Absent on a landing, which is on no branch. */
  readonly branch?: string | undefined;
  readonly run?: string | undefined;
  readonly step?: string | undefined;
  readonly worker?: number | undefined;
}

/** A linked worktree as its private git folder describes it. */
export interface WorktreeEntry {
  readonly path: string;
  /** The private git folder. */
  readonly gitDir: string;
  /** `undefined`: not one that Reprise made. */
  readonly label: WorktreeLabel | undefined;
  /** It was made to its end. Before that, nobody has worked in it. */
  readonly ready: boolean;
  /** Its folder is gone. */
  readonly missing: boolean;
}

const readyFile = 'reprise.json';
const reasonStart = 'reprise ';

/**
 * Git writes the reason of a lock before anything else of a new worktree. So even one that was never finished says
 * whose it is, and `git worktree prune` leaves it alone.
 */
export const lockReason = (label: WorktreeLabel): string => `${reasonStart}${JSON.stringify(label)}`;

/** From now on it is one that may be thrown away: what is deleted halfway must not pass for a workspace. */
export const unmarkReady = (gitDir: string): void => removeIfThere(join(gitDir, readyFile));

export const markReady = (gitDir: string, label: WorktreeLabel): void =>
  replaceFile(join(gitDir, readyFile), `${JSON.stringify(label)}\n`);

/** All linked worktrees, also those whose folder is gone. Reads files only. */
export function worktreeEntries({ commonDir }: Repository): readonly WorktreeEntry[] {
  const folder = join(commonDir, 'worktrees');
  return namesIn(folder).flatMap(name => readEntry(join(folder, name)) ?? []);
}

/** Private folders of worktrees that were killed before they had a place. */
export function unbornEntries({ commonDir }: Repository): readonly string[] {
  const folder = join(commonDir, 'worktrees');
  return namesIn(folder)
    .map(name => join(folder, name))
    .filter(gitDir => !existsSync(join(gitDir, 'gitdir')) && labelOf(gitDir) !== undefined);
}

/** Asks the folder itself first; only where that is gone, all worktrees have to be looked through. */
export function worktreeAt(repository: Repository, path: string): WorktreeEntry | undefined {
  const place = realPath(path);
  const gitDir = privateGitDir(place);
  const named = gitDir === undefined ? undefined : readEntry(gitDir);
  const isOurs = named?.path === place && dirname(named.gitDir) === join(repository.commonDir, 'worktrees');
  return isOurs ? named : worktreeEntries(repository).find(entry => entry.path === place);
}

/** The path without symbolic links, as far as it exists: this is how git keeps it. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), basename(path));
  }
}

/** The private git folder of a worktree that was just made. */
export function privateGitDir(path: string): string | undefined {
  const link = /^gitdir: (.*)\n?$/s.exec(readIfThere(join(path, '.git')) ?? '')?.[1];
  return link === undefined ? undefined : resolve(path, link.replace(/\n$/, ''));
}

function readEntry(gitDir: string): WorktreeEntry | undefined {
  const link = readIfThere(join(gitDir, 'gitdir'))?.replace(/\n$/, '');
  if (link === undefined || link === '') return undefined;
  const dotGit = resolve(gitDir, link);
  return {
    path: dirname(dotGit),
    gitDir,
    label: labelOf(gitDir),
    ready: existsSync(join(gitDir, readyFile)),
    missing: !existsSync(dirname(dotGit)),
  };
}

function labelOf(gitDir: string): WorktreeLabel | undefined {
  const reason = readIfThere(join(gitDir, 'locked'));
  return (
    toLabel(readIfThere(join(gitDir, readyFile))) ??
    (reason?.startsWith(reasonStart) ? toLabel(reason.slice(reasonStart.length)) : undefined)
  );
}

function toLabel(text: string | undefined): WorktreeLabel | undefined {
  const { kind, base, branch, run, step, worker } = parseRecord(text) ?? {};
  if ((kind !== 'workspace' && kind !== 'landing') || typeof base !== 'string') return undefined;
  return {
    kind,
    base,
    ...(typeof branch === 'string' ? { branch } : {}),
    ...(typeof run === 'string' ? { run } : {}),
    ...(typeof step === 'string' ? { step } : {}),
    ...(typeof worker === 'number' ? { worker } : {}),
  };
}

/**
 * Git in a workspace, bound to its private git folder. An agent may have removed the `.git` of its folder, or begun a
 * repository of its own there; git would then find the checkout of the user further up, and change that.
 */
export function gitInside(repository: Repository, path: string): Git {
  const entry = worktreeAt(repository, path);
  const env = entry
    ? { GIT_DIR: entry.gitDir, GIT_WORK_TREE: entry.path }
    : { GIT_CEILING_DIRECTORIES: dirname(path) };
  return repository.git.with({ cwd: path, env });
}

/** Leads whoever works in a workspace to its branch again, if the `.git` that does so was removed. */
export function restoreLink(repository: Repository, path: string): void {
  const link = join(path, '.git');
  if (!existsSync(path) || existsSync(link)) return;
  const entry = worktreeAt(repository, path);
  if (entry) replaceFile(link, `gitdir: ${entry.gitDir}\n`);
}

/** `.git/` if the folder has become a repository of its own, whose commits are nowhere else. */
export function ownRepository(path: string): readonly string[] {
  const isFolder = statSync(join(path, '.git'), { throwIfNoEntry: false })?.isDirectory() ?? false;
  return isFolder ? ['.git/'] : [];
}

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
