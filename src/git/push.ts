import { RepriseError } from '../core/index.ts';
import { type Git, lastLines } from './git.ts';
import { branchPrefix, isBranchName, shellWord } from './names.ts';
import { resolveCommit } from './refs.ts';

export interface PushRequest {
  readonly git: Git;
  /** Name of the remote. */
  readonly remote: string;
  /** Branch of Reprise. It gets the same name on the remote. */
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
 * Pushes a commit to a branch below `reprise/` on a remote. The branch is overwritten only if it is at the commit that this
 * repository last saw there. The user's hooks run. Throws CANNOT_LAND if the remote does not exist or rejects the push,
 * GIT_FAILED if it cannot be reached.
 */
export async function pushBranch({ git, remote, branch, commit, signal }: PushRequest): Promise<PushResult> {
  if (!isBranchName(branch) || !branch.startsWith(branchPrefix)) {
    throw refused(`cannot push ${JSON.stringify(branch)}: it is not a branch of Reprise`);
  }
  await refuseUnknownRemote(git, remote);
  const ref = `refs/heads/${branch}`;
  // Empty if this repository never saw the branch: then it must not exist on the remote.
  const seen = (await resolveCommit(git, `refs/remotes/${remote}/${branch}`)) ?? '';
  const lease = `--force-with-lease=${ref}:${seen}`;
  const args = ['push', '--porcelain', '--no-follow-tags', lease, '--', remote, `${commit}:${ref}`];
  const { code, stdout, stderr } = await git.run(args, { signal });
  if (code === 0) return { remote, branch, commit };
  const rejection = /^!\t\S+\t(.*)$/m.exec(stdout)?.[1];
  if (rejection === undefined) {
    throw new RepriseError('GIT_FAILED', `cannot push to ${remote}: ${lastLines(stderr)}`, {
      hint: `check the connection: git ls-remote ${shellWord(remote)}`,
    });
  }
  throw refused(
    `cannot push ${branch} to ${remote}: ${rejection}`,
    rejection.includes('stale info')
      ? `the branch has changed on the remote; check it first: git fetch ${shellWord(remote)} ${shellWord(branch)}`
      : `to see the reason: git push ${shellWord(remote)} ${shellWord(branch)}`,
  );
}

async function refuseUnknownRemote(git: Git, remote: string): Promise<void> {
  const names = (await git.ok(['remote'])).split('\n').filter(name => name !== '');
  if (names.includes(remote)) return;
  throw refused(
    `there is no remote ${JSON.stringify(remote)} to push to`,
    names.length === 0
      ? `add it: git remote add ${shellWord(remote)} <url>`
      : `use an existing remote (${names.join(', ')}), or add it: git remote add ${shellWord(remote)} <url>`,
  );
}

const refused = (message: string, hint?: string): RepriseError =>
  new RepriseError('CANNOT_LAND', message, hint === undefined ? {} : { hint });
