import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RepriseError } from '../core/errors.ts';
import type { Owner } from '../store/port.ts';
import { lastLines } from './git.ts';
import { withRepositoryLock } from './lock.ts';
import type { Repository } from './repository.ts';
import { type WorktreeEntry, worktreeAt, worktreeEntries } from './workspace/entries.ts';
import { copyIncluded } from './workspace/include-files.ts';
import { addWorktree } from './workspace/worktree.ts';

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
