import { RepriseError } from '../../core/index.ts';
import { replayCommits } from '../commits.ts';
import { isBranchName, shellWord } from '../names.ts';
import { branchTip } from '../refs.ts';
import { type Repository, resolveCommit } from '../repository.ts';
import { noteLanded } from '../workspace/branch-records.ts';
import { type ScratchRequest, withScratchWorktree } from '../workspace/worktree.ts';
import type { LandingCourse, PrepareResult, ReadyLanding, VerifyResult } from './landing.ts';
import { type CheckoutRequest, obstacle } from './move-branch.ts';

export interface PrepareRequest
  extends Omit<CheckoutRequest, 'branch'>,
    Pick<LandingCourse, 'source' | 'onto'> {
  /** The branch stays where it is, so that no checkout of it can be in the way. */
  readonly leavesBranch?: boolean | undefined;
}

/**
 * The work on top of the branch to land on, or why it cannot be there. Only objects are written; and, if nothing is left
 * to land, a note that says so. Throws CANNOT_LAND if a branch is missing.
 */
export async function prepareLanding(request: PrepareRequest): Promise<PrepareResult> {
  const { repository, source, onto, leavesBranch } = request;
  const { git } = repository;
  const [from, tip] = await inOrder(targetTip(repository, onto), sourceTip(repository, source));
  const replayed = await replayCommits(git, { onto: from, tip });
  if (replayed.kind === 'conflict') {
    const { files, subject } = replayed;
    return { kind: 'conflict', files, subject, onto: from, ...(await workAt(repository, source)) };
  }
  if (replayed.kind === 'nothing') {
    noteSource(repository, { source, tip, commit: from });
    return { kind: 'nothing', commit: from };
  }
  const { commit, commits } = replayed;
  const early = leavesBranch ? undefined : await obstacle({ ...request, branch: onto, from, to: commit });
  return early ?? { kind: 'ready', from, tip, commit, ...(commits && { commits }) };
}

/** Where the branch with the work is checked out, if it is. */
async function workAt(
  { git }: Repository,
  source: LandingCourse['source'],
): Promise<{ readonly workAt?: string }> {
  if (!('branch' in source)) return {};
  const ref = `refs/heads/${source.branch}`;
  const path = await git.line(['for-each-ref', '--format=%(worktreepath)', ref]);
  return path === '' ? {} : { workAt: path };
}

/** If this does not come about, the branch is merely kept for longer than needed. */
export function noteSource(
  repository: Repository,
  { source, tip, commit }: { source: LandingCourse['source']; tip: string; commit: string },
): void {
  if ('branch' in source) noteLanded(repository, { branch: source.branch, tip, commit });
}

async function sourceTip(repository: Repository, source: LandingCourse['source']): Promise<string> {
  const [what, name] = 'branch' in source ? ['branch', source.branch] : ['commit', source.commit];
  const tip = what === 'branch' ? await tipOf(repository, name) : await resolveCommit(repository.git, name);
  if (tip !== undefined) return tip;
  throw new RepriseError('CANNOT_LAND', `there is no ${what} ${show(name)}`);
}

const tipOf = async (repository: Repository, branch: string): Promise<string | undefined> =>
  isBranchName(branch) ? branchTip(repository, branch) : undefined;

async function targetTip(repository: Repository, branch: string): Promise<string> {
  const tip = await tipOf(repository, branch);
  if (tip !== undefined) return tip;
  const { stdout } = await repository.git.run(['symbolic-ref', '--quiet', '--short', 'HEAD']);
  const current = stdout.trim();
  if (current === branch) {
    throw new RepriseError('CANNOT_LAND', `${show(branch)} has no commit yet`, {
      hint: 'make one first: git commit --allow-empty -m "Begin"',
    });
  }
  throw new RepriseError('CANNOT_LAND', `there is no branch ${show(branch)} to land on`, {
    hint:
      current === ''
        ? `make it first: git branch ${shellWord(branch)}`
        : `the current branch is ${current}: land on that, or make the other: git branch ${shellWord(branch)}`,
  });
}

/** Both at once; if both fail, the first is what is said. */
async function inOrder<A, B>(first: Promise<A>, second: Promise<B>): Promise<readonly [A, B]> {
  second.catch(() => {});
  return [await first, await second];
}

const show = (name: string): string => (isBranchName(name) ? name : JSON.stringify(name));

/** What has to pass before anything moves. */
export interface Verification {
  /** A folder that does not exist: the result is checked out there for as long as it is verified. */
  readonly path: string;
  /** Patterns of ignored files to copy there. */
  readonly include?: readonly string[] | undefined;
  readonly run: (checkout: { readonly path: string; readonly commit: string }) => Promise<VerificationResult>;
}

export interface VerificationResult {
  readonly passed: boolean;
  /** The end of what the command printed. */
  readonly output: string;
}

interface VerifyRequest
  extends Omit<ScratchRequest, 'path' | 'include' | 'commit'>,
    Pick<LandingCourse, 'source'>,
    Pick<ReadyLanding, 'commit'> {
  readonly verification: Verification;
}

/** Tries what would land in a checkout of its own. To be called with the lock `land`. */
export async function verifyLanding(request: VerifyRequest): Promise<VerifyResult> {
  const { repository, source, commit, verification } = request;
  const { path, include, run } = verification;
  const { passed, output } = await withScratchWorktree({ ...request, path, include }, () =>
    run({ path, commit }),
  );
  return passed ? { passed } : { passed, output, ...(await workAt(repository, source)) };
}
