import { makeRecentDurable, type Repository, readHead, resolveBase } from '../../git/index.ts';

export interface PinnedBase {
  /** Name of the checked-out branch, or `HEAD` if it is detached. */
  readonly ref: string;
  readonly commit: string;
}

/** Reads the checked-out commit. All workspaces of the run start from it, even if the checkout moves meanwhile. */
export async function pinBase(repository: Repository): Promise<PinnedBase> {
  const head = await readHead(repository.git);
  await makeRecentDurable(repository, head?.branch === undefined ? 'HEAD' : `refs/heads/${head.branch}`);
  return { ref: head?.branch ?? 'HEAD', commit: head?.commit ?? (await resolveBase(repository)) };
}
