import { resolveBase } from '../git/base.ts';
import { openRepository } from '../git/repository.ts';

export interface PinnedBase {
  /** The branch that is checked out; `HEAD` if none is. */
  readonly ref: string;
  readonly commit: string;
}

/** What is checked out now: all workspaces of the run begin there, whatever happens to the checkout meanwhile. */
export async function pinBase({
  cwd,
  env,
}: {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}): Promise<PinnedBase> {
  const repository = await openRepository({ cwd, inheritEnv: env });
  const [commit, branch] = await Promise.all([
    resolveBase(repository),
    repository.git.run(['symbolic-ref', '--quiet', '--short', 'HEAD']),
  ]);
  return { ref: branch.code === 0 ? branch.stdout.trim() : 'HEAD', commit };
}
