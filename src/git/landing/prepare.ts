import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { hooksPattern, isProtected, RepriseError } from '../../core/index.ts';
import { commitsBetween, replayCommits } from '../commits.ts';
import { withoutNewline } from '../git.ts';
import { isBranchName, printable, shellWord } from '../names.ts';
import { branchTargets, resolveCommit } from '../refs.ts';
import type { Repository } from '../repository.ts';
import { type LandedNote, noteLanded, readBranchRecord } from '../workspace/branch-records.ts';
import { type CheckoutRequest, type ScratchRequest, withScratchWorktree } from '../workspace/worktree.ts';
import { type ChangedPath, changedPaths, settleInterruptedMove } from './interrupted-move.ts';
import type {
  LandedEarlier,
  LandingCourse,
  PrepareResult,
  ProtectedFile,
  ProtectedWork,
  ReadyLanding,
  VerifyResult,
} from './landing.ts';
import { obstacle } from './move-branch.ts';

export interface PrepareRequest
  extends Omit<CheckoutRequest, 'branch'>,
    Pick<LandingCourse, 'source' | 'target'> {
  /** Whether the target will not be moved, so that its checkout cannot block the landing. */
  readonly leavesBranch?: boolean | undefined;
  /** Path of `reprise.yaml`, relative to the top of the repository. */
  readonly config?: string | undefined;
}

/**
 * Rebases the work onto the target. Writes only git objects and, if the target has all of the work, a note that the
 * source has landed. Throws CANNOT_LAND if the source or the target does not exist.
 */
export async function prepareLanding(request: PrepareRequest): Promise<PrepareResult> {
  const { repository, source, target, leavesBranch } = request;
  const { git } = repository;
  const leftBehind = await settleInterruptedMove(repository);
  if (leftBehind) return { kind: 'in-the-way', ...leftBehind, files: [] };
  const tips = await branchTargets(repository, [target, ...('branch' in source ? [source.branch] : [])]);
  const { commit: from, branch } = tips.get(target) ?? (await refuseTarget(repository, target));
  const tip = 'branch' in source ? tips.get(source.branch)?.commit : await resolveCommit(git, source.commit);
  if (tip === undefined) throw noSource(source);
  const replayed = await replayCommits(git, { onto: from, tip });
  if (replayed.kind === 'conflict') {
    const { files, subject } = replayed;
    return { kind: 'conflict', files, subject, onto: from, ...(await workAt(repository, source)) };
  }
  if (replayed.kind === 'nothing') {
    const landed = await landedBefore(repository, { source, branch, tip });
    if (landed === undefined) noteSourceLanded(repository, { source, tip, commit: from });
    return { kind: 'nothing', commit: from, ...(landed && { landed }) };
  }
  const { commit, commits } = replayed;
  await refuseLostSubmodules(repository, { source, from, to: commit });
  const blocked = leavesBranch ? undefined : await obstacle({ ...request, branch, from, to: commit });
  if (blocked) return blocked;
  const guarded = await protectedWork(repository, { from, to: commit, config: request.config });
  return {
    kind: 'ready',
    from,
    tip,
    commit,
    ...(commits && { commits }),
    ...(guarded && { protected: guarded }),
  };
}

/** Returns the changes of protected files, by the settings of the commit that the work lands on. */
async function protectedWork(
  repository: Repository,
  { from, to, config = 'reprise.yaml' }: { from: string; to: string; config?: string | undefined },
): Promise<ProtectedWork | undefined> {
  const { git, root, commonDir } = repository;
  const [changes, settings, hooks] = await Promise.all([
    changedPaths(git, from, to),
    git.run(['cat-file', 'blob', `${from}:${config}`]),
    git.run(['config', '--type=path', '--get', 'core.hooksPath']),
  ]);
  const hooksPath = hooks.code === 0 ? withoutNewline(hooks.stdout) : undefined;
  const files = await protectedAmong(changes, {
    settings: settings.code === 0 ? settings.stdout : '',
    hooks: hooksPath && hooksPattern(hooksPath, [...(root === undefined ? [] : [root]), dirname(commonDir)]),
  });
  if (files.length === 0) return undefined;
  const paths = files.slice(0, mostDiffs).map(({ path }) => path);
  const { diffOf } = await import('../diff.ts');
  const diff = await diffOf({ repository, base: from, head: to, paths });
  return { files, diff: shortDiff(diff) };
}

/** The content of a deleted file, in the form of `<mode> <id>`. */
const deleted = `000000 ${'0'.repeat(40)}`;

const mostDiffs = 100;
const longestDiff = 20_000;

export const shortDiff = (diff: string): string =>
  diff.length > longestDiff ? `${diff.slice(0, longestDiff)}\n… (truncated)` : diff;

/** Filters changed files by the list of protected files, with the settings in the text of a `reprise.yaml`. */
export async function protectedAmong(
  changes: readonly Pick<ChangedPath, 'path' | 'after'>[],
  { settings, hooks }: { readonly settings: string; readonly hooks?: string | undefined },
): Promise<readonly ProtectedFile[]> {
  // Loading the reader of YAML takes 100 ms, and few projects have these settings.
  const read = /protect/.test(settings)
    ? (await import('../../workflow/yaml/config.ts')).protectionIn(settings)
    : undefined;
  if (read?.landProtected) return [];
  const protect = [...(hooks === undefined ? [] : [hooks]), ...(read?.protect ?? [])];
  return changes.flatMap(({ path, after }) =>
    isProtected(path, protect) ? { path, to: after ? `${after.mode} ${after.id}` : deleted } : [],
  );
}

/** Returns how an earlier landing moved the target to the same work, if there was one. */
async function landedBefore(
  repository: Repository,
  { source, branch, tip }: Pick<LandingCourse, 'source'> & { readonly branch: string; readonly tip: string },
): Promise<LandedEarlier | undefined> {
  const { landed } = ('branch' in source && readBranchRecord(repository, source.branch)) || {};
  const { moved } = landed ?? {};
  if (landed?.tip !== tip || moved?.onto !== branch) return undefined;
  const { commit } = landed;
  const { from } = moved;
  return { commit, from, commits: await commitsBetween(repository.git, { from, to: commit }) };
}

/**
 * Throws CANNOT_LAND if the work names a commit of a submodule that exists only in the workspace, which is removed after
 * the landing. A submodule that is checked out nowhere cannot be checked.
 */
async function refuseLostSubmodules(
  repository: Repository,
  { source, from, to }: Pick<LandingCourse, 'source'> & { readonly from: string; readonly to: string },
): Promise<void> {
  const { git, root } = repository;
  const links = (await changedPaths(git, from, to)).filter(({ after }) => after?.mode === '160000');
  if (links.length === 0) return;
  const { workAt: work } = await workAt(repository, source);
  for (const { path, after } of links) {
    const commit = after?.id ?? '';
    const clone = work === undefined ? undefined : join(work, path);
    if (clone === undefined || !existsSync(join(clone, '.git'))) continue;
    const { code, stdout } = await git
      .with({ cwd: clone })
      .run(['rev-list', '--count', '--max-count=1', commit, '--not', '--remotes']);
    if (code === 0 && Number(stdout) === 0) continue;
    const main = root === undefined ? undefined : join(root, path);
    const isInMain =
      main !== undefined &&
      existsSync(join(main, '.git')) &&
      (await git.with({ cwd: main }).run(['cat-file', '-e', `${commit}^{commit}`])).code === 0;
    if (isInMain) continue;
    throw new RepriseError(
      'CANNOT_LAND',
      `commit ${commit.slice(0, 10)} of the submodule ${printable(path)} exists only in the workspace`,
      {
        hint: `push it, then land again: git -C ${shellWord(clone)} push origin ${commit}:refs/heads/<branch>`,
      },
    );
  }
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
  { source, ...landed }: LandedNote & { readonly source: LandingCourse['source'] },
): void {
  if ('branch' in source) noteLanded(repository, { branch: source.branch, ...landed });
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
