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
import { isCheckedOut } from '../landing/move-branch.ts';
import { withRepositoryLock } from '../lock.ts';
import { printable, shellWord } from '../names.ts';
import { resolveCommit } from '../repository.ts';
import { type ParkedRef, park, parkedRef } from '../workspace/branch-records.ts';
import { worktreeStatus } from '../workspace/commit.ts';
import { parkAll, resetWorkspace } from '../workspace/reset.ts';
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
  /** The commit with which the branch conflicts. */
  readonly onto: string;
  /** What the markers call it. */
  readonly ontoName?: string | undefined;
}

export type BeginResult =
  /** There is no conflict, and nothing was done. */
  { readonly kind: 'fits' } | { readonly kind: 'conflict'; readonly resolution: Resolution };

/**
 * Replays a branch on another commit up to its first conflict, and lays that out in the workspace of the branch; what was
 * not committed there is parked. If the same conflict lies there already, it is left as it is. Throws CANNOT_LAND if
 * there is no such branch or commit, WORKSPACE_FAILED if it is no workspace of the branch.
 */
export function beginResolution(request: BeginRequest): Promise<BeginResult> {
  return withRepositoryLock({ ...request, name: 'worktrees' }, ({ repository }) =>
    begin({ ...request, repository }),
  );
}

async function begin({ repository, path, branch, ontoName, ...request }: BeginRequest): Promise<BeginResult> {
  const place = conflictWorkspaceAt(repository, { path, branch });
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
  /** The next one lies in the workspace. */
  | { readonly kind: 'conflict'; readonly resolution: Resolution }
  /** Nothing was changed. */
  | { readonly kind: 'unsolved'; readonly files: readonly string[]; readonly why: string }
  | ResolutionRefused
  | ResolvedConflict;

/**
 * Takes what is in the workspace now for the solution, committed or not: it becomes the commit that did not fit, by its
 * author, and the rest of the branch is replayed on it. When nothing is left the branch moves, if it still is where it
 * was, and is checked out again. May be repeated after a crash with the same resolution.
 */
export async function continueResolution(request: ContinueRequest): Promise<ContinueResult> {
  const { repository, path, resolution } = request;
  const place = conflictWorkspaceAt(repository, { path, branch: resolution.branch });
  const mark = readMark<ResolutionProgress>(place.gitDir);
  if (mark?.after === keyOf(resolution)) {
    const { value } = mark;
    if (value.kind === 'finishing') return finishResolution(request, place, value);
    return { kind: 'conflict', resolution: await layOutAgain(place, value) };
  }
  const position = await resolutionPositionOf(place, resolution);
  return 'kind' in position ? position : continueWith(request, place, position);
}

/** What the solution goes on top of. */
interface ResolutionPosition {
  readonly parent: string;
  /** Where the branch is now. */
  readonly from: string;
  readonly rest: readonly ListedCommit[];
}

/** Whoever solves conflicts may do it in his own way, and move the branch himself. */
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
    const why = `what is checked out does not have the commits of ${labels.ours} any more; to go back: ${back}`;
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

/** Commits of the old branch whose changes are not in what somebody made of it. */
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

/** Of a branch that is about to lack something which the old one had. */
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
 * Brings the workspace back to its branch, at its old tip. What is in the workspace and nowhere else is parked first; what
 * git ignores stays. Throws WORKSPACE_FAILED like `resetWorkspace`.
 */
export async function abortResolution(
  request: AbortRequest,
): Promise<{ readonly parked: readonly ParkedRef[] }> {
  const { repository, path, resolution } = request;
  const { git, gitDir, branch } = conflictWorkspaceAt(repository, { path, branch: resolution.branch });
  const [head, current] = await Promise.all([
    resolveCommit(git, 'HEAD'),
    resolveCommit(git, `refs/heads/${branch}`),
  ]);
  // Moved by somebody else, it stays there; moved by whoever was to solve the conflict, it goes back.
  const commit = current === undefined || current === head ? resolution.tip : current;
  const { parked } = await resetWorkspace({ ...request, commit });
  removeMark(gitDir);
  return { parked };
}

/** The branch is not where it was, or somebody else has it checked out. What was solved is parked. */
export interface ResolutionRefused {
  readonly kind: 'refused';
  readonly why: string;
  readonly hint: string;
}

/**
 * Moves the branch to what was solved, and checks it out again. Files first, then the branch, then HEAD: whoever commits
 * what a crash left in between does not take back what the branch has.
 */
const finishResolution = (
  request: ResolutionRequest,
  place: ConflictWorkspace,
  { from, resolved }: Finishing,
): Promise<ResolvedConflict | ResolutionRefused> =>
  withRepositoryLock({ ...request, name: 'worktrees' }, async ({ repository }) => {
    const { git, gitDir, branch } = place;
    const { commit } = resolved;
    const ref = `refs/heads/${branch}`;
    const refuse = async (refusal: ResolutionRefused): Promise<ResolutionRefused> => {
      const kept = parkedRef(branch, commit);
      await park(git, kept, commit);
      return { ...refusal, hint: `${refusal.hint}\nwhat was solved is kept: git log ${shellWord(kept)}` };
    };
    const [current, status] = await Promise.all([resolveCommit(git, ref), worktreeStatus(git)]);
    if (current !== from && current !== commit) return refuse(movedAway(branch, current));
    if (await isCheckedOut(repository, branch, gitDir)) return refuse(checkedOutElsewhere(branch));
    // Done before, by a call whose answer was lost: somebody may be at work here again.
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
      ? `${branch} was deleted while its conflicts were solved`
      : `${branch} was moved to ${to.slice(0, 10)} by somebody else while its conflicts were solved`,
  hint: `see what it holds now, then land it again: git log ${shellWord(branch)}`,
});

const checkedOutElsewhere = (branch: string): ResolutionRefused => ({
  kind: 'refused',
  why: `${branch} was checked out somewhere else while its conflicts were solved`,
  hint: 'find out where, and switch to another branch there: git worktree list',
});
