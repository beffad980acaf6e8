import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import type { Owner } from '../../store/index.ts';
import { hasCode, namesIn, readIfThere } from '../files.ts';
import { type GitResult, lastLines } from '../git.ts';
import { withRepositoryLock } from '../lock.ts';
import { safeSegment } from '../names.ts';
import { plainRootOf, type Repository } from '../repository.ts';
import {
  lockReason,
  realPath,
  type WorktreeEntry,
  type WorktreeLabel,
  worktreeAt,
  worktreeEntries,
} from './entries.ts';
import { copyIncluded } from './include-files.ts';

interface NewWorktree {
  readonly repository: Repository;
  /** It is not there, or an empty folder; its parents are there. */
  readonly path: string;
  readonly label: WorktreeLabel;
  readonly commit: string;
  /** A branch that is made for it; without one, it is on none. */
  readonly branch?: string | undefined;
  readonly hooks: 'run' | 'skip';
  readonly signal?: AbortSignal | undefined;
}

/** `git worktree add`, with what git says if it refuses. To be called with the lock `worktrees`. */
export async function addWorktree(worktree: NewWorktree): Promise<GitResult> {
  const quick = await addQuickly(worktree);
  if (quick?.code === 0) return quick;
  const { repository, path, label, commit, branch, hooks, signal } = worktree;
  const on = branch === undefined ? ['--detach'] : ['--no-track', '-b', branch];
  return repository.git.run([...worktreeAdd(label), ...on, '--', path, commit], { hooks, signal });
}

export const worktreeAdd = (label: WorktreeLabel): readonly string[] => [
  ...['worktree', 'add', '--quiet', '--lock', '--reason'],
  lockReason(label),
];

/**
 * Git takes four processes for a worktree: one each to make the branch, to point HEAD at it and to check it out. Here the
 * files that link both folders are written as git writes them, and one `git checkout` does the rest. The private folder
 * appears with all its files: every git command of the repository reads those, and fails if one is there but empty.
 * Leaves nothing behind if the checkout fails. `undefined` where only git knows what belongs into a worktree.
 */
async function addQuickly(worktree: NewWorktree): Promise<GitResult | undefined> {
  const { repository, label, commit, branch, hooks, signal } = worktree;
  const path = realPath(worktree.path);
  const folder = join(repository.commonDir, 'worktrees');
  if (plainRootOf(repository.commonDir) === undefined || isKnown(folder, path)) return undefined;
  const gitDir = putInPlace(repository, path, {
    locked: lockReason(label),
    gitdir: join(path, '.git'),
    HEAD: branch === undefined ? commit : `ref: refs/heads/${branch}`,
    commondir: '../..',
  });
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, '.git'), `gitdir: ${gitDir}\n`);
  const on = branch === undefined ? ['--detach'] : ['--no-track', '-b', branch];
  // Never the checkout further up, whatever becomes of the link.
  const inside = repository.git.with({ cwd: path, env: { GIT_CEILING_DIRECTORIES: dirname(path) } });
  const result = await inside.run(['checkout', '--quiet', '--force', ...on, commit, '--'], { hooks, signal });
  if (result.code !== 0) for (const left of [path, gitDir]) rmSync(left, { recursive: true, force: true });
  return result;
}

const isKnown = (folder: string, path: string): boolean =>
  namesIn(folder).some(name => readIfThere(join(folder, name, 'gitdir')) === `${join(path, '.git')}\n`);

/** A private git folder for it, under a name that no other has. */
function putInPlace(
  { commonDir }: Repository,
  path: string,
  files: Readonly<Record<string, string>>,
): string {
  const beside = join(commonDir, 'reprise', 'unborn');
  // Of somebody who was killed here; the lock is ours now.
  rmSync(beside, { recursive: true, force: true });
  mkdirSync(beside, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(beside, name), `${text}\n`);
  const folder = join(commonDir, 'worktrees');
  mkdirSync(folder, { recursive: true });
  const name = safeSegment(basename(path));
  for (let count = 0; ; count++) {
    const gitDir = join(folder, count === 0 ? name : `${name}${count}`);
    // To rename onto an empty folder would replace it, and that may be one which git has just reserved.
    if (existsSync(gitDir)) continue;
    try {
      renameSync(beside, gitDir);
      return gitDir;
    } catch (error) {
      if (!hasCode(error, 'ENOTEMPTY') && !hasCode(error, 'EEXIST')) throw error;
    }
  }
}

export interface ScratchRequest {
  readonly repository: Repository;
  readonly owner: Owner;
  readonly path: string;
  readonly commit: string;
  readonly include?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs the body with a checkout of the commit in a folder that is thrown away afterwards. To be called with the lock
 * `land`, so that a scratch worktree that is there already is one that a crash left behind.
 */
export async function withScratchWorktree<T>(request: ScratchRequest, body: () => Promise<T>): Promise<T> {
  const { owner } = request;
  await withRepositoryLock({ ...request, name: 'worktrees' }, async ({ repository }) => {
    await discardScratch(repository);
    await add({ ...request, repository });
  });
  try {
    return await body();
  } finally {
    // Not with the signal: what was made is cleared away, however it ended.
    await withRepositoryLock(
      { repository: request.repository, owner, name: 'worktrees' },
      async ({ repository }) => {
        const entry = worktreeAt(repository, request.path);
        if (entry?.label?.kind === 'landing') await discard(entry);
      },
    );
  }
}

/** Clears away what landings left behind. To be called with both locks. */
export async function discardScratch(repository: Repository): Promise<void> {
  for (const entry of worktreeEntries(repository)) {
    if (entry.label?.kind === 'landing') await discard(entry);
  }
}

async function add({ repository, path, commit, include, signal }: ScratchRequest): Promise<void> {
  const { git, root } = repository;
  if (existsSync(path)) {
    throw new RepriseError('WORKSPACE_FAILED', `${path} is there already, and is needed for landing`, {
      hint: 'move it away, or remove it if nothing in it is needed',
    });
  }
  await mkdir(dirname(path), { recursive: true });
  const label = { kind: 'landing', base: commit } as const;
  const { code, stderr } = await addWorktree({ repository, path, label, commit, hooks: 'skip', signal });
  if (code !== 0) {
    throw new RepriseError('WORKSPACE_FAILED', `cannot check out ${commit} in ${path}: ${lastLines(stderr)}`);
  }
  if (root !== undefined) await copyIncluded({ git, root, target: path, patterns: include });
}

async function discard({ path, gitDir }: WorktreeEntry): Promise<void> {
  await rm(path, { recursive: true, force: true });
  await rm(gitDir, { recursive: true, force: true });
}
