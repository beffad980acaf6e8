import { RepriseError, type Timestamp, toEpochMs } from '../../core/index.ts';
import {
  asOneCommit,
  type CommitText,
  type ListedCommit,
  pickAll,
  readCommits,
  recordOf,
  replayCommits,
  writeCommit,
} from '../commits.ts';
import type { Git } from '../git.ts';
import { withRepositoryLock } from '../lock.ts';
import { printable, shellWord } from '../names.ts';
import { resolveCommit } from '../refs.ts';
import { type ParkedRef, park, parkedRef } from '../workspace/branch-records.ts';
import { worktreeStatus } from '../workspace/commit.ts';
import { parkAll, resetWorkspace } from '../workspace/reset.ts';
import { isCheckedOut } from '../workspace/worktree.ts';
import {
  bringTo,
  type ConflictWorkspace,
  conflictWorkspaceAt,
  leaveUnfinished,
  stageSolution,
  unsolvedFiles,
} from './lay-out.ts';
import {
  type Finishing,
  keyOf,
  layOutAgain,
  layOutDraft,
  type Resolution,
  type ResolutionProgress,
  type ResolutionRequest,
  type ResolvedConflict,
  readMark,
  removeMark,
  writeMark,
} from './progress.ts';

interface BeginRequest extends ResolutionRequest {
  readonly branch: string;
  /** Commit that the branch conflicts with. */
  readonly onto: string;
  /** Label of that commit in the markers. Defaults to its short id. */
  readonly ontoName?: string | undefined;
}

export type BeginResult =
  /** The branch does not conflict. The workspace is unchanged. */
  { readonly kind: 'fits' } | { readonly kind: 'conflict'; readonly resolution: Resolution };

/**
 * Replays a branch onto another commit up to its first conflict, and lays out that conflict in the workspace of the
 * branch. Uncommitted changes are parked first. If the same conflict is already laid out, it stays as is. Throws
 * CANNOT_LAND if the branch or the commit does not exist, WORKSPACE_FAILED if the path is not the workspace of the branch.
 */
export function beginResolution(request: BeginRequest): Promise<BeginResult> {
  return withRepositoryLock({ ...request, name: 'worktrees' }, ({ repository }) =>
    begin({ ...request, repository }),
  );
}

async function begin({ repository, path, branch, ontoName, ...request }: BeginRequest): Promise<BeginResult> {
  const place = await conflictWorkspaceAt(repository, { path, branch });
  const { git, gitDir } = place;
  const [tip, onto, status] = await Promise.all([
    commitNamed(git, `refs/heads/${branch}`),
    commitNamed(git, request.onto),
    worktreeStatus(git),
  ]);
  const known = readMark<ResolutionProgress>(gitDir)?.value;
  if (known && known.kind !== 'finishing' && status.branch !== branch) {
    const begun = known.kind === 'laid-out' ? known.resolution : known.draft;
    if (begun.tip === tip && begun.onto === onto) {
      return { kind: 'conflict', resolution: await layOutAgain(place, known) };
    }
  }
  const conflict = await replayCommits(git, { onto, tip });
  if (conflict.kind !== 'conflict') return { kind: 'fits' };
  const parked = await parkAll(git, { branch, target: tip });
  await leaveUnfinished(place);
  const draft = { branch, tip, onto, ontoName: ontoName ?? onto.slice(0, 10), conflict, dropped: [], parked };
  return { kind: 'conflict', resolution: await layOutDraft(place, draft, '') };
}

async function commitNamed(git: Git, name: string): Promise<string> {
  const commit = await resolveCommit(git, name);
  if (commit !== undefined) return commit;
  throw new RepriseError('CANNOT_LAND', `there is no ${name.replace('refs/heads/', 'branch ')}`);
}

interface ContinueRequest extends ResolutionRequest {
  readonly resolution: Resolution;
  readonly committer: { readonly name: string; readonly email: string };
  readonly at: Timestamp;
}

export type ContinueResult =
  /** The next conflict is laid out in the workspace. */
  | { readonly kind: 'conflict'; readonly resolution: Resolution }
  /** The conflict is not resolved. The workspace is unchanged. */
  | { readonly kind: 'unsolved'; readonly files: readonly string[]; readonly why: string }
  | ResolutionRefused
  | ResolvedConflict;

/**
 * Takes the files of the workspace, committed or not, as the resolution. They become the commit that conflicted, with its
 * author, and the rest of the branch is replayed on top. After the last commit, the branch moves and is checked out again,
 * unless it has moved meanwhile. Idempotent: may be repeated with the same resolution after a crash.
 */
export async function continueResolution(request: ContinueRequest): Promise<ContinueResult> {
  const { repository, path, resolution } = request;
  const place = await conflictWorkspaceAt(repository, { path, branch: resolution.branch });
  const mark = readMark<ResolutionProgress>(place.gitDir);
  if (mark?.after === keyOf(resolution)) {
    const { value } = mark;
    if (value.kind === 'finishing') return finishResolution(request, place, value);
    return { kind: 'conflict', resolution: await layOutAgain(place, value) };
  }
  const position = await resolutionPositionOf(place, resolution);
  return 'kind' in position ? position : continueWith(request, place, position);
}

/** Place of the resolution in the history of the branch. */
interface ResolutionPosition {
  /** Parent of the commit with the resolution. */
  readonly parent: string;
  /** Tip of the branch. */
  readonly from: string;
  /** Commits that are still to be replayed. */
  readonly rest: readonly ListedCommit[];
}

/** The agent may resolve conflicts in any way, for example with its own rebase, and may move the branch. */
async function resolutionPositionOf(
  place: ConflictWorkspace,
  resolution: Resolution,
): Promise<ResolutionPosition | ContinueResult> {
  const { git, branch } = place;
  const { tip, onto, at, commit, rest, labels } = resolution;
  const files = resolution.files.map(file => file.path);
  const [head, from] = await Promise.all([
    resolveCommit(git, 'HEAD'),
    resolveCommit(git, `refs/heads/${branch}`),
  ]);
  if (from === undefined || (from !== tip && from !== head)) return movedAway(branch, from);
  if (head === undefined || (await git.run(['merge-base', '--is-ancestor', onto, head])).code !== 0) {
    const back = `git checkout --detach ${at.slice(0, 10)}`;
    const why = `HEAD no longer contains the commits of ${labels.ours}; to go back: ${back}`;
    return { kind: 'unsolved', files, why };
  }
  const unsolved = await unsolvedFiles(place, { files, labels, sides: [at, commit] });
  if (unsolved.length > 0) {
    const why = `conflict markers are left in ${unsolved.map(printable).join(', ')}`;
    return { kind: 'unsolved', files: unsolved, why };
  }
  if (from === tip) return { parent: at, from, rest };
  return { parent: head, from, rest: await missingIn(git, { head, tip, rest }) };
}

/** Returns the remaining commits of the old branch whose changes are missing in the branch that the agent moved. */
async function missingIn(
  git: Git,
  { head, tip, rest }: { head: string; tip: string; rest: readonly ListedCommit[] },
): Promise<readonly ListedCommit[]> {
  if (rest.length === 0) return [];
  const args = ['rev-list', '--right-only', '--cherry-pick', '--no-merges', `${head}...${tip}`];
  const missing = new Set((await git.ok(args)).split('\n'));
  return rest.filter(({ commit }) => missing.has(commit));
}

async function continueWith(
  request: ContinueRequest,
  place: ConflictWorkspace,
  position: ResolutionPosition,
): Promise<ContinueResult> {
  const { resolution } = request;
  const { parent, from, rest } = position;
  const { onto, labels } = resolution;
  const { git, gitDir, branch } = place;
  await leaveUnfinished(place);
  const tree = await stageSolution(place, resolution);
  const isChange = tree !== recordOf(await readCommits(git, [parent]), parent).tree;
  const solved = isChange ? await commitSolution(git, { ...request, tree, parent }) : parent;
  const isDropped = !isChange && parent === resolution.at;
  const dropped = isDropped ? [...resolution.dropped, resolution.subject] : resolution.dropped;
  const isKept = resolution.parked.some(each => each.commit === resolution.tip);
  const isTipLost = !isKept && (isDropped || from !== resolution.tip);
  const parked = [...resolution.parked, ...(isTipLost ? [await parkTip(git, resolution)] : [])];
  const after = keyOf(resolution);
  const replayed = await pickAll(git, { onto: solved, series: rest });
  if (replayed.kind === 'conflict') {
    const draft = { branch, tip: from, onto, ontoName: labels.ours, conflict: replayed, dropped, parked };
    return { kind: 'conflict', resolution: await layOutDraft(place, draft, after) };
  }
  const commit = replayed.kind === 'commit' ? replayed.commit : solved;
  const finishing: ResolutionProgress = {
    kind: 'finishing',
    from,
    resolved: { kind: 'resolved', branch, commit, dropped, parked },
  };
  writeMark<ResolutionProgress>(gitDir, { after, value: finishing });
  return finishResolution(request, place, finishing);
}

/** Parks the old tip of a branch that is about to lose changes. */
async function parkTip(git: Git, { branch, tip, onto }: Resolution): Promise<ParkedRef> {
  const ref = parkedRef(branch, tip);
  await park(git, ref, tip);
  return { ref, commit: tip, commits: Number(await git.line(['rev-list', '--count', `${onto}..${tip}`])) };
}

async function commitSolution(
  git: Git,
  { resolution, committer, at, tree, parent }: ContinueRequest & { tree: string; parent: string },
): Promise<string> {
  const { commit, isWhole, onto } = resolution;
  const source: Pick<CommitText, 'lines' | 'message'> = isWhole
    ? await asOneCommit(git, { onto, tip: commit })
    : recordOf(await readCommits(git, [commit]), commit);
  const stamp = `${committer.name} <${committer.email}> ${Math.floor(toEpochMs(at) / 1000)} +0000`;
  const committed = `committer ${Buffer.from(stamp).toString('latin1')}`;
  const lines = source.lines.map(line => (line.startsWith('committer ') ? committed : line));
  return writeCommit(git, { lines, message: source.message, tree, parents: [parent] });
}

interface AbortRequest extends ResolutionRequest {
  readonly resolution: Pick<Resolution, 'branch' | 'tip'>;
}

/**
 * Resets the workspace to its branch at the old tip. Work that exists only in the workspace is parked first, and ignored
 * files stay. Throws WORKSPACE_FAILED like `resetWorkspace`.
 */
export async function abortResolution(
  request: AbortRequest,
): Promise<{ readonly parked: readonly ParkedRef[] }> {
  const { repository, path, resolution } = request;
  const { git, gitDir, branch } = await conflictWorkspaceAt(repository, { path, branch: resolution.branch });
  const [head, current] = await Promise.all([
    resolveCommit(git, 'HEAD'),
    resolveCommit(git, `refs/heads/${branch}`),
  ]);
  // A branch that the agent moved is reset to its old tip. A branch that another process moved stays.
  const commit = current === undefined || current === head ? resolution.tip : current;
  const { parked } = await resetWorkspace({ ...request, commit });
  removeMark(gitDir);
  return { parked };
}

/** The branch has moved, or is checked out elsewhere. The resolution is parked. */
export interface ResolutionRefused {
  readonly kind: 'refused';
  readonly why: string;
  readonly hint: string;
}

/**
 * Moves the branch to the resolved commits and checks it out again. Files change first, then the branch, then HEAD, so
 * that a commit made after a crash in between does not revert changes of the branch.
 */
const finishResolution = (
  request: ResolutionRequest,
  place: ConflictWorkspace,
  { from, resolved }: Finishing,
): Promise<ResolvedConflict | ResolutionRefused> =>
  withRepositoryLock({ ...request, name: 'worktrees' }, async ({ repository }) => {
    const { git, branch } = place;
    const { commit } = resolved;
    const ref = `refs/heads/${branch}`;
    const refuse = async (refusal: ResolutionRefused): Promise<ResolutionRefused> => {
      const kept = parkedRef(branch, commit);
      await park(git, kept, commit);
      return { ...refusal, hint: `${refusal.hint}\nthe resolution is kept: git log ${shellWord(kept)}` };
    };
    const [current, status] = await Promise.all([resolveCommit(git, ref), worktreeStatus(git)]);
    if (current !== from && current !== commit) return refuse(movedAway(branch, current));
    if (await isCheckedOut(repository, branch, place.path)) return refuse(checkedOutElsewhere(branch));
    // An earlier call did this, but its result was lost. The workspace may be in use again.
    if (current === commit && status.branch === branch) return resolved;
    await bringTo(git, commit);
    const move = ['update-ref', '--no-deref', '-m', 'reprise: solve', ref, commit, from];
    if (current !== commit && (await git.run(move, { hooks: 'skip' })).code !== 0) {
      return refuse(movedAway(branch, await resolveCommit(git, ref)));
    }
    await git.ok(['symbolic-ref', '-m', 'reprise: solve', 'HEAD', ref]);
    return resolved;
  });

export const movedAway = (branch: string, to: string | undefined): ResolutionRefused => ({
  kind: 'refused',
  why:
    to === undefined
      ? `${branch} was deleted while its conflicts were being resolved`
      : `${branch} was moved to ${to.slice(0, 10)} while its conflicts were being resolved`,
  hint: `check its commits, then land it again: git log ${shellWord(branch)}`,
});

const checkedOutElsewhere = (branch: string): ResolutionRefused => ({
  kind: 'refused',
  why: `${branch} was checked out elsewhere while its conflicts were being resolved`,
  hint: 'find that checkout and switch it to another branch: git worktree list',
});
