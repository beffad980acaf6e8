import { openRepository, plainRepositoryAt, type Repository } from '../../git/repository.ts';
import type { Lease } from '../../store/port.ts';
import type { Environment } from '../environment.ts';

/** Who owns a run is on the tape once, where the run was taken. */
export const withoutLease = <T extends { readonly lease: Lease }>({ lease, ...rest }: T): Omit<T, 'lease'> =>
  rest;

/** The number of the lock counts what has landed in a repository before, in other runs too. */
export const withoutToken = ({ token: _, ...rest }: { readonly token: number }): unknown => rest;

/** The repository of the project. Asking git where it is takes two processes; it does not move. */
export interface RepositoryOnce {
  (): Promise<Repository>;
  /** What is known of it without asking git; `undefined` if it is laid out in an unusual way and was never opened. */
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
