import { RepriseError } from '../../core/index.ts';
import { commonDirNow, openRepository, type Repository } from '../../git/index.ts';
import type { EventStore, Fence, Lease } from '../../store/index.ts';
import type { Environment } from '../environment.ts';

/** Omits the lease: the tape has it once, where the run was acquired. */
export const withoutLease = <T extends { readonly lease: Lease }>({ lease, ...rest }: T): Omit<T, 'lease'> =>
  rest;

/** Omits the proof of ownership, for the same reason. */
export const withoutFence = <T extends { readonly fence?: Fence | undefined }>({
  fence: _,
  ...rest
}: T): Omit<T, 'fence'> => rest;

/**
 * Throws FENCED unless the caller still owns the run. Part of every effect that changes a workspace. Prevents a race: a former
 * owner that was presumed dead and returns must not reset or commit the folder in which its successor works.
 */
export async function requireOwner(
  store: Pick<EventStore, 'holdsRun'>,
  { runId, lease }: Fence,
): Promise<void> {
  if (await store.holdsRun(runId, lease)) return;
  throw new RepriseError('FENCED', `this process no longer owns run ${runId}; its workspace was left alone`, {
    hint: `to see its owner: reprise show ${runId}`,
  });
}

/** Omits the token of the lock, which also counts landings of other runs in the same repository. */
export const withoutToken = ({ token: _, ...rest }: { readonly token: number }): unknown => rest;

/** The repository of the project, opened once: locating it takes a git process, and it does not move. */
export interface RepositoryOnce {
  (): Promise<Repository>;
  /** Returns the git folder of the repository synchronously; `undefined` outside a repository. */
  known(): Pick<Repository, 'commonDir'> | undefined;
}

export function openOnce({ repository, projectRoot, env, runProgram }: Environment): RepositoryOnce {
  if (repository) return repository;
  let opening: Promise<Repository> | undefined;
  let opened: Pick<Repository, 'commonDir'> | undefined;
  const open = async (): Promise<Repository> => {
    opening ??= openRepository({ cwd: projectRoot, inheritEnv: env, runProgram });
    try {
      const repository = await opening;
      opened = repository;
      return repository;
    } catch (error) {
      opening = undefined;
      throw error;
    }
  };
  const known = () => {
    const commonDir = opened?.commonDir ?? commonDirNow({ cwd: projectRoot, env });
    if (commonDir !== undefined) opened = { commonDir };
    return opened;
  };
  return Object.assign(open, { known });
}
