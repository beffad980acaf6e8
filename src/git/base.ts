import { RepriseError } from '../core/errors.ts';
import { type Repository, resolveCommit } from './repository.ts';

/**
 * The commit that a run begins from, to be asked once: branches move while it goes on. Throws WORKSPACE_FAILED if there
 * is no such commit.
 */
export async function resolveBase({ git, root, commonDir }: Repository, name = 'HEAD'): Promise<string> {
  if (/^[0-9a-f]{40}([0-9a-f]{24})?$/.test(name)) return name;
  const commit = await resolveCommit(git, name);
  if (commit !== undefined) return commit;
  if ((await resolveCommit(git, 'HEAD')) === undefined) {
    throw new RepriseError('WORKSPACE_FAILED', `${root ?? commonDir} has no commit to begin from`, {
      hint: 'make one first: git commit --allow-empty -m "Begin"',
    });
  }
  throw new RepriseError('WORKSPACE_FAILED', `${JSON.stringify(name)} is no commit to begin from`, {
    hint: 'name a branch, a tag or a commit; git branch --all lists the branches',
  });
}
