import { createHash } from 'node:crypto';
import { existsSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import {
  namesIn,
  parseRecord,
  readIfThere,
  recordFile,
  recordFiles,
  removeIfThere,
  syncPaths,
} from '../files.ts';
import { type Git, withoutNewline } from '../git.ts';
import type { Repository } from '../repository.ts';

/** Owner and purpose of a worktree that Reprise made. */
export interface WorktreeLabel {
  /** Kind of worktree; `landing` is a scratch folder without work of its own. */
  readonly kind: 'workspace' | 'landing';
  readonly base: string;
  /** Branch of the workspace; absent for a landing, which is on no branch. */
  readonly branch?: string | undefined;
  readonly run?: string | undefined;
  readonly step?: string | undefined;
  readonly worker?: number | undefined;
}

/** A worktree, as `git worktree list` describes it. */
export interface WorktreeEntry {
  readonly path: string;
  /** Commit that is checked out; `undefined` in a bare repository, and if the branch does not exist. */
  readonly commit: string | undefined;
  /** Branch that is checked out; `undefined` if HEAD is detached. */
  readonly branch: string | undefined;
  /** Label of Reprise; `undefined` if Reprise did not make the worktree. */
  readonly label: WorktreeLabel | undefined;
  /** Whether the folder was deleted. */
  readonly missing: boolean;
}

/** What is needed to list worktrees. Without the git folder, a worktree whose removal was killed has no label. */
type ListedRepository = Pick<Repository, 'git'> & Partial<Pick<Repository, 'commonDir'>>;

/** Lists all worktrees, the main one first. Requires the `worktrees` lock: git fails if it meets a half-made one. */
export async function allWorktrees({ git, commonDir }: ListedRepository): Promise<readonly WorktreeEntry[]> {
  const output = await git.ok(['worktree', 'list', '--porcelain', '-z']);
  return output
    .split('\0\0')
    .filter(record => record !== '')
    .map(toEntry)
    .map(entry =>
      entry.label === undefined && commonDir !== undefined
        ? { ...entry, label: intendedLabel({ commonDir }, entry.path) }
        : entry,
    );
}

/** Lists linked worktrees, including those whose folder was deleted. Requires the `worktrees` lock. */
export const worktreeEntries = async (repository: ListedRepository): Promise<readonly WorktreeEntry[]> =>
  (await allWorktrees(repository)).slice(1);

/** Finds the linked worktree at a path. Requires the `worktrees` lock. */
export async function worktreeAt(
  repository: ListedRepository,
  path: string,
): Promise<WorktreeEntry | undefined> {
  const place = realPath(path);
  return (await worktreeEntries(repository)).find(entry => entry.path === place);
}

function toEntry(record: string): WorktreeEntry {
  const lines = record.split('\0');
  const field = (name: string) => lines.find(line => line.startsWith(`${name} `))?.slice(name.length + 1);
  const path = field('worktree') ?? '';
  const reason = field('locked');
  const head = field('HEAD');
  return {
    path,
    commit: /^0+$/.test(head ?? '') ? undefined : head,
    branch: field('branch')?.replace(/^refs\/heads\//, ''),
    label: reason === undefined ? undefined : labelIn(reason),
    missing: !existsSync(path),
  };
}

const reasonStart = 'reprise ';

/**
 * Label of a worktree as the reason of its lock. Git writes the reason before any other file of a new worktree, so even
 * an unfinished one has its label, and `git worktree prune` keeps it.
 */
export const lockReason = (label: WorktreeLabel): string => `${reasonStart}${JSON.stringify(label)}`;

export const labelIn = (reason: string): WorktreeLabel | undefined =>
  reason.startsWith(reasonStart) ? toLabel(reason.slice(reasonStart.length)) : undefined;

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

/** Resolves symbolic links as far as the path exists, which is the form that git stores. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), basename(path));
  }
}

/** A worktree that Reprise made completely. Before that, no work has been done in it. */
export interface FinishedWorktree {
  /** Private git folder of the worktree. */
  readonly gitDir: string;
  readonly label: WorktreeLabel;
}

const readyFile = 'reprise.json';

/** File that tells where the git folder of a worktree is, even if an agent replaces the `.git` file that says so. */
const placeFile = ({ commonDir }: Pick<Repository, 'commonDir'>, path: string): string =>
  join(
    commonDir,
    'reprise',
    'worktrees',
    `${createHash('sha256').update(path).digest('hex').slice(0, 32)}.json`,
  );

/**
 * Records which worktree is about to be made or deleted. After a crash, git's own files about it may be empty or gone, and a
 * half-deleted one must not be taken for a workspace.
 */
export const intendWorktree = (
  repository: Repository,
  { path, label }: { readonly path: string; readonly label: WorktreeLabel },
): void => recordFile(placeFile(repository, realPath(path)), `${JSON.stringify({ label })}\n`);

/** Label of a worktree that was about to be made or deleted, and in which there is no work. */
export function intendedLabel(
  repository: Pick<Repository, 'commonDir'>,
  path: string,
): WorktreeLabel | undefined {
  const { label } = parseRecord(readIfThere(placeFile(repository, realPath(path)))) ?? {};
  return label === undefined ? undefined : toLabel(JSON.stringify(label));
}

/** Records that a worktree is complete, once it survives a power loss. */
export async function markReady(
  repository: Repository,
  { path, gitDir, label }: FinishedWorktree & { readonly path: string },
): Promise<void> {
  const place = realPath(path);
  await syncPaths([...namesIn(gitDir).map(name => join(gitDir, name)), gitDir, join(place, '.git'), place]);
  await recordFiles({
    [placeFile(repository, place)]: `${JSON.stringify({ gitDir })}\n`,
    [join(gitDir, readyFile)]: `${JSON.stringify({ ...label, path: place })}\n`,
  });
}

export const forgetPlace = (repository: Repository, path: string): void =>
  removeIfThere(placeFile(repository, realPath(path)));

/** Finds a finished worktree by its records. Another worktree may have its git folder by now, so both must agree. */
function recordedAt(repository: Pick<Repository, 'commonDir'>, path: string): FinishedWorktree | undefined {
  const { gitDir } = parseRecord(readIfThere(placeFile(repository, path))) ?? {};
  if (typeof gitDir !== 'string') return undefined;
  const text = readIfThere(join(gitDir, readyFile));
  const label = toLabel(text);
  return label === undefined || parseRecord(text)?.['path'] !== path ? undefined : { gitDir, label };
}

/**
 * Git in a worktree, without searching for a repository. If an agent deletes the `.git` file of its workspace, a search
 * would find the user's checkout further up, and change it.
 */
export function gitInside(repository: Pick<Repository, 'git' | 'commonDir'>, path: string): Git {
  const top = realPath(path);
  const gitDir = recordedAt(repository, top)?.gitDir ?? join(top, '.git');
  return repository.git.with({ cwd: path, env: { GIT_DIR: gitDir, GIT_WORK_TREE: top } });
}

/** Git folder of a worktree, and the hash function of its object ids. */
export interface WorktreeGit {
  readonly gitDir: string;
  readonly objectFormat: string;
}

/**
 * Returns the git folder of a worktree of the repository, and restores the `.git` file if it was deleted. `undefined` if
 * the folder belongs to another repository or to none.
 */
export async function worktreeGitOf(repository: Repository, path: string): Promise<WorktreeGit | undefined> {
  const place = realPath(path);
  if (!existsSync(place)) return undefined;
  const recorded = recordedAt(repository, place);
  if (!recorded) return askForGit(repository, place);
  if (!existsSync(join(place, '.git'))) await repairLinks(repository);
  const { gitDir, label } = recorded;
  return { gitDir, objectFormat: label.base.length === 64 ? 'sha256' : 'sha1' };
}

const repairLinks = ({ git }: Repository) => git.run(['worktree', 'repair'], { hooks: 'skip' });

async function askForGit(repository: Repository, path: string): Promise<WorktreeGit | undefined> {
  const inside = gitInside(repository, path);
  const ask = () => inside.run(['rev-parse', '--show-object-format', '--path-format=absolute', '--git-dir']);
  let result = await ask();
  if (result.code !== 0 && ownRepository(path).length === 0) {
    await repairLinks(repository);
    result = await ask();
  }
  if (result.code !== 0) return undefined;
  const [objectFormat = '', ...rest] = withoutNewline(result.stdout).split('\n');
  const gitDir = rest.join('\n');
  const commonDir = realPath(repository.commonDir);
  const isOurs = gitDir === commonDir || dirname(gitDir) === join(commonDir, 'worktrees');
  return isOurs ? { gitDir, objectFormat } : undefined;
}

/** Returns the git folder that the `.git` file of a worktree names, if it belongs to the repository. */
function linkedAt({ commonDir }: Pick<Repository, 'commonDir'>, path: string): string | undefined {
  const named = /^gitdir: (.+)\n$/.exec(readIfThere(join(path, '.git')) ?? '')?.[1];
  const gitDir = named === undefined ? undefined : resolve(path, named);
  const isOurs = gitDir !== undefined && dirname(gitDir) === join(realPath(commonDir), 'worktrees');
  return isOurs && existsSync(join(gitDir, 'HEAD')) ? gitDir : undefined;
}

/** Returns the private git folder of a linked worktree of the repository. */
export async function gitDirOf(repository: Repository, path: string): Promise<string | undefined> {
  const place = realPath(path);
  const known = recordedAt(repository, place) ? undefined : linkedAt(repository, place);
  const gitDir = known ?? (await worktreeGitOf(repository, path))?.gitDir;
  return gitDir === realPath(repository.commonDir) ? undefined : gitDir;
}

/** State of the folder of a worktree that Reprise made. */
export type WorktreeCondition =
  | ({ readonly kind: 'finished' } & FinishedWorktree)
  /** The folder is gone, or a crash came before any work could be done in it. */
  | { readonly kind: 'unfinished' }
  /** The folder has contents, but its git folder is unknown. */
  | { readonly kind: 'foreign' };

/** Inspects the folder of a worktree that Reprise made. Needs no lock. */
export async function worktreeConditionAt(repository: Repository, path: string): Promise<WorktreeCondition> {
  if (!existsSync(path) || intendedLabel(repository, path)) return { kind: 'unfinished' };
  const gitDir = await gitDirOf(repository, path);
  if (gitDir === undefined) {
    const isEmpty = namesIn(path).every(name => name === '.git') && ownRepository(path).length === 0;
    return { kind: isEmpty ? 'unfinished' : 'foreign' };
  }
  const text = readIfThere(join(gitDir, readyFile));
  if (text === undefined) return { kind: 'unfinished' };
  // A power cut may have left the file empty; the lock has the same label.
  const label = toLabel(text) ?? (await worktreeAt(repository, path))?.label;
  return label === undefined ? { kind: 'foreign' } : { kind: 'finished', gitDir, label };
}

/** `.git/` if the folder has become a separate repository, whose commits exist nowhere else. */
export function ownRepository(path: string): readonly string[] {
  const isFolder = statSync(join(path, '.git'), { throwIfNoEntry: false })?.isDirectory() ?? false;
  return isFolder ? ['.git/'] : [];
}

/**
 * Returns the names of submodules with commits that no remote branch has. A submodule cloned into a worktree keeps its git
 * folder inside that of the worktree, and is deleted with it.
 */
export async function submodulesWithOwnCommits(git: Git, gitDir: string): Promise<readonly string[]> {
  const top = join(gitDir, 'modules');
  const own: string[] = [];
  for (const module of gitDirsBelow(top)) {
    const inside = git.with({ cwd: module, env: { GIT_DIR: module, GIT_WORK_TREE: undefined } });
    const { code, stdout } = await inside.run([
      ...['rev-list', '--count', '--all', 'HEAD'],
      ...['--not', '--remotes'],
    ]);
    // A submodule that git cannot read counts as one with commits.
    if (code !== 0 || Number(stdout) > 0) own.push(relative(top, module));
  }
  return own;
}

/** Finds git folders at any depth: names of submodules contain slashes, and submodules contain submodules. */
function gitDirsBelow(folder: string): readonly string[] {
  return namesIn(folder).flatMap(name => {
    const path = join(folder, name);
    const isGitDir = existsSync(join(path, 'HEAD')) && existsSync(join(path, 'objects'));
    return isGitDir ? [path, ...gitDirsBelow(join(path, 'modules'))] : gitDirsBelow(path);
  });
}
