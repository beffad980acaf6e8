import { RepriseError } from '../core/index.ts';
import { type Git, lastLines } from './git.ts';
import { branchPrefix, isBranchName, shellWord } from './names.ts';
import { resolveCommit } from './repository.ts';

export interface PushRequest {
  readonly git: Git;
  /** The name of a remote. */
  readonly remote: string;
  /** One of Reprise's own; it has the same name there. */
  readonly branch: string;
  readonly commit: string;
  readonly signal?: AbortSignal | undefined;
}

export interface PushResult {
  readonly remote: string;
  readonly branch: string;
  readonly commit: string;
}

/**
 * Brings a commit to a branch of a remote. What is there already is replaced only if it is what this repository last saw
 * there, and only below `reprise/`. Hooks of the user run. Throws CANNOT_LAND if there is no such remote or it refuses,
 * GIT_FAILED if it cannot be reached.
 */
export async function pushBranch({ git, remote, branch, commit, signal }: PushRequest): Promise<PushResult> {
  if (!isBranchName(branch) || !branch.startsWith(branchPrefix)) {
    throw refused(`${JSON.stringify(branch)} is not a branch of Reprise, and is not pushed`);
  }
  await refuseUnknownRemote(git, remote);
  const ref = `refs/heads/${branch}`;
  // None: then there must be none over there either.
  const seen = (await resolveCommit(git, `refs/remotes/${remote}/${branch}`)) ?? '';
  const lease = `--force-with-lease=${ref}:${seen}`;
  const args = ['push', '--porcelain', '--no-follow-tags', lease, '--', remote, `${commit}:${ref}`];
  const { code, stdout, stderr } = await git.run(args, { signal });
  if (code === 0) return { remote, branch, commit };
  const said = /^!\t\S+\t(.*)$/m.exec(stdout)?.[1];
  if (said === undefined) {
    throw new RepriseError('GIT_FAILED', `cannot push to ${remote}: ${lastLines(stderr)}`, {
      hint: `see whether it can be reached: git ls-remote ${shellWord(remote)}`,
    });
  }
  throw refused(
    `${remote} did not take ${branch}: ${said}`,
    said.includes('stale info')
      ? `somebody else has pushed to it; look at that first: git fetch ${shellWord(remote)} ${shellWord(branch)}`
      : `see why: git push ${shellWord(remote)} ${shellWord(branch)}`,
  );
}

async function refuseUnknownRemote(git: Git, remote: string): Promise<void> {
  const names = (await git.ok(['remote'])).split('\n').filter(name => name !== '');
  if (names.includes(remote)) return;
  throw refused(
    `there is no remote ${JSON.stringify(remote)} to push to`,
    names.length === 0
      ? 'add it: git remote add origin <address>'
      : `there is ${names.join(', ')}: name one of them, or add it with git remote add`,
  );
}

const refused = (message: string, hint?: string): RepriseError =>
  new RepriseError('CANNOT_LAND', message, hint === undefined ? {} : { hint });
