import { RepriseError } from '../../core/index.ts';
import { replayCommits } from '../commits.ts';
import { isBranchName, shellWord } from '../names.ts';
import { branchTips, resolveCommit } from '../refs.ts';
import type { Repository } from '../repository.ts';
import { noteLanded } from '../workspace/branch-records.ts';
import type { CheckoutRequest } from '../workspace/checkout.ts';
import { type ScratchRequest, withScratchWorktree } from '../workspace/worktree.ts';
import type { LandingCourse, PrepareResult, ReadyLanding, VerifyResult } from './landing.ts';
import { obstacle } from './move-branch.ts';

export interface PrepareRequest
  extends Omit<CheckoutRequest, 'branch'>,
    Pick<LandingCourse, 'source' | 'target'> {
  /** Whether the target will not be moved, so that its checkout cannot block the landing. */
  readonly leavesBranch?: boolean | undefined;
}

/**
 * Rebases the work onto the target. Writes only git objects and, if the target has all of the work, a note that the
 * source has landed. Throws CANNOT_LAND if the source or the target does not exist.
 */
export async function prepareLanding(request: PrepareRequest): Promise<PrepareResult> {
  const { repository, source, target, leavesBranch } = request;
  const { git } = repository;
  const tips = await branchTips(repository, [target, ...('branch' in source ? [source.branch] : [])]);
  const from = tips.get(target) ?? (await refuseTarget(repository, target));
  const tip = 'branch' in source ? tips.get(source.branch) : await resolveCommit(git, source.commit);
  if (tip === undefined) throw noSource(source);
  const replayed = await replayCommits(git, { onto: from, tip });
  if (replayed.kind === 'conflict') {
    const { files, subject } = replayed;
    return { kind: 'conflict', files, subject, onto: from, ...(await workAt(repository, source)) };
  }
  if (replayed.kind === 'nothing') {
    noteSourceLanded(repository, { source, tip, commit: from });
    return { kind: 'nothing', commit: from };
  }
  const { commit, commits } = replayed;
  const blocked = leavesBranch ? undefined : await obstacle({ ...request, branch: target, from, to: commit });
  return blocked ?? { kind: 'ready', from, tip, commit, ...(commits && { commits }) };
}

/** Returns the path of the worktree that has the source checked out, if there is one. */
async function workAt(
  { git }: Repository,
  source: LandingCourse['source'],
): Promise<{ readonly workAt?: string }> {
  if (!('branch' in source)) return {};
  const ref = `refs/heads/${source.branch}`;
  const path = await git.line(['for-each-ref', '--format=%(worktreepath)', ref]);
  return path === '' ? {} : { workAt: path };
}

/** Notes the commit that the source landed as. If the note gets lost, cleanup merely keeps the branch longer than needed. */
export function noteSourceLanded(
  repository: Repository,
  { source, tip, commit }: { source: LandingCourse['source']; tip: string; commit: string },
): void {
  if ('branch' in source) noteLanded(repository, { branch: source.branch, tip, commit });
}

function noSource(source: LandingCourse['source']): RepriseError {
  const [kind, name] = 'branch' in source ? ['branch', source.branch] : ['commit', source.commit];
  return new RepriseError('CANNOT_LAND', `there is no ${kind} ${show(name)}`);
}

async function refuseTarget(repository: Repository, target: string): Promise<never> {
  const { stdout } = await repository.git.run(['symbolic-ref', '--quiet', '--short', 'HEAD']);
  const current = stdout.trim();
  if (current === target) {
    throw new RepriseError('CANNOT_LAND', `${show(target)} has no commit yet`, {
      hint: 'make one first: git commit --allow-empty -m "Begin"',
    });
  }
  throw new RepriseError('CANNOT_LAND', `there is no branch ${show(target)} to land on`, {
    hint:
      current === ''
        ? `create it: git branch ${shellWord(target)}`
        : `land on the current branch, ${current}, or create the missing one: git branch ${shellWord(target)}`,
  });
}

const show = (name: string): string => (isBranchName(name) ? name : JSON.stringify(name));

/** Check that must pass before the target moves. */
export interface Verification {
  /** Folder for a temporary checkout of the rebased work. Must not exist. */
  readonly path: string;
  /** Patterns of ignored files that are copied into the checkout. */
  readonly include?: readonly string[] | undefined;
  readonly run: (checkout: { readonly path: string; readonly commit: string }) => Promise<VerificationResult>;
}

export interface VerificationResult {
  readonly passed: boolean;
  /** End of the output of the command. */
  readonly output: string;
}

interface VerifyRequest
  extends Omit<ScratchRequest, 'path' | 'include' | 'commit'>,
    Pick<LandingCourse, 'source'>,
    Pick<ReadyLanding, 'commit'> {
  readonly verification: Verification;
}

/** Verifies the rebased work in its own checkout. The caller must hold the lock `land`. */
export async function verifyLanding(request: VerifyRequest): Promise<VerifyResult> {
  const { repository, source, commit, verification } = request;
  const { path, include, run } = verification;
  const { passed, output } = await withScratchWorktree({ ...request, path, include }, () =>
    run({ path, commit }),
  );
  return passed ? { passed } : { passed, output, ...(await workAt(repository, source)) };
}
