import { openRepository, plainRepositoryAt, type Repository } from '../../git/index.ts';
import type { Lease } from '../../store/index.ts';
import type { Environment } from '../environment.ts';

/** Omits the lease: the tape has it once, where the run was acquired. */
export const withoutLease = <T extends { readonly lease: Lease }>({ lease, ...rest }: T): Omit<T, 'lease'> =>
  rest;

/** Omits the token of the lock, which also counts landings of other runs in the same repository. */
export const withoutToken = ({ token: _, ...rest }: { readonly token: number }): unknown => rest;

/** The repository of the project, opened once: locating it takes two git processes, and it does not move. */
export interface RepositoryOnce {
  (): Promise<Repository>;
  /** Returns the repository without calling git, or `undefined` if its layout is unusual and it was never opened. */
  known(): Pick<Repository, 'commonDir'> | undefined;
}

export function openOnce({ projectRoot, env, runProgram }: Environment): RepositoryOnce {
  let opening: Promise<Repository> | undefined;
  let opened: Repository | undefined;
  const open = async (): Promise<Repository> => {
    opening ??= openRepository({ cwd: projectRoot, inheritEnv: env, runProgram });
    try {
      opened = await opening;
      return opened;
    } catch (error) {
      opening = undefined;
      throw error;
    }
  };
  return Object.assign(open, { known: () => opened ?? plainRepositoryAt(projectRoot) });
}
