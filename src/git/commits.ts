import { rmSync } from 'node:fs';
import { RepriseError } from '../core/index.ts';
import { temporaryFolder } from '../process/index.ts';
import { readLooseObject } from './files.ts';
import { type Git, gitFailed } from './git.ts';
import { quotedPath } from './names.ts';
import type { Repository } from './repository.ts';

/** Fields of a commit, with one character per byte so that every encoding survives. */
export interface CommitText {
  readonly tree: string;
  readonly parents: readonly string[];
  /** Header lines for author, committer and encoding. */
  readonly lines: readonly string[];
  readonly message: string;
}

/** A stored commit, without its signature. */
export interface CommitRecord extends CommitText {
  readonly subject: string;
}

/** Reads several commits with one process. Omits missing ones. */
export async function readCommits(
  git: Git,
  ids: readonly string[],
): Promise<ReadonlyMap<string, CommitRecord>> {
  const input = [...ids, ''].join('\n');
  const output = await git.ok(['cat-file', '--batch'], { input, encoding: 'bytes' });
  const records = new Map<string, CommitRecord>();
  for (let at = 0; at < output.length; ) {
    const lineEnd = output.indexOf('\n', at);
    const [id = '', type, size] = output.slice(at, lineEnd).split(' ');
    if (type === 'missing') {
      at = lineEnd + 1;
      continue;
    }
    const end = lineEnd + 1 + Number(size);
    if (type === 'commit') records.set(id, parseCommit(output.slice(lineEnd + 1, end)));
    at = end + 1;
  }
  return records;
}

/** Reads a commit that was made a moment ago without a process. `undefined` unless it has a file of its own. */
export function readLooseCommit({ commonDir }: Pick<Repository, 'commonDir'>, id: string) {
  const text = readLooseObject(commonDir, { kind: 'commit', id });
  return text === undefined ? undefined : parseCommit(text);
}

/** Parses the text of a commit, with one character per byte. */
export function parseCommit(text: string): CommitRecord {
  const end = text.indexOf('\n\n');
  const header = (end === -1 ? text : text.slice(0, end)).split('\n');
  const message = end === -1 ? '' : text.slice(end + 2);
  const valuesOf = (name: string) =>
    header.filter(line => line.startsWith(`${name} `)).map(line => line.slice(name.length + 1));
  return {
    tree: valuesOf('tree')[0] ?? '',
    parents: valuesOf('parent'),
    lines: header.filter(line => /^(author|committer|encoding) /.test(line)),
    message,
    subject: Buffer.from(message.split('\n')[0] ?? '', 'latin1').toString(),
  };
}

/** Header lines of temporary commits. */
export const stampLines = ['author', 'committer'].map(role => `${role} reprise <reprise@localhost> 0 +0000`);

export function commitBytes({ tree, parents, lines, message }: CommitText): string {
  const header = [`tree ${tree}`, ...parents.map(parent => `parent ${parent}`), ...lines];
  return `${header.join('\n')}\n\n${message}`;
}

export const writeCommit = (git: Git, commit: CommitText): Promise<string> =>
  git.line(['hash-object', '-t', 'commit', '-w', '--stdin'], {
    input: commitBytes(commit),
    encoding: 'bytes',
  });

/** Result of replaying a series of commits on another base. Only objects are written; nothing is checked out. */
export type ReplayedCommits =
  | {
      readonly kind: 'commit';
      readonly commit: string;
      /** New commits on top of the base, oldest first; `undefined` if merges leave their order open. */
      readonly commits: readonly LandedCommit[] | undefined;
    }
  | { readonly kind: 'nothing' }
  | Conflict;

/** State of a replay that stopped at a conflict. It is plain data, from which the replay can continue. */
export interface Conflict extends ConflictedMerge {
  /** Commit with everything replayed before the conflict. */
  readonly at: string;
  /** Commit that conflicts. */
  readonly commit: string;
  readonly subject: string;
  /** Commits that follow, oldest first. */
  readonly rest: readonly ListedCommit[];
  /** Whether the conflict is of the whole branch at once, because the branch contains merges. */
  readonly isWhole: boolean;
}

export interface LandedCommit {
  readonly commit: string;
  readonly subject: string;
}

export interface ListedCommit extends LandedCommit {
  readonly parents: readonly string[];
}

/**
 * Replays the commits of `tip` that `onto` does not have on top of `onto`. Authors, committers, dates and messages stay, so
 * that the same work on the same base always gives the same commits. Signatures are dropped, because they would be invalid.
 */
export async function replayCommits(
  git: Git,
  { onto, tip }: { onto: string; tip: string },
): Promise<ReplayedCommits> {
  const listed = await listCommits(git, { onto, tip });
  if (listed.length === 0) return { kind: 'nothing' };
  const series = listed.filter(({ parents }) => parents.length < 2);
  const isLine = series.length === listed.length;
  // If `onto` is an ancestor of the tip, it is the parent of one of these commits.
  if (listed.some(({ parents }) => parents.includes(onto)))
    return { kind: 'commit', commit: tip, commits: isLine ? listed.map(toLanded) : undefined };
  const result = await pickAll(git, { onto, series });
  return isLine ? result : withMerges(git, { onto, tip, result });
}

const toLanded = ({ commit, subject }: LandedCommit): LandedCommit => ({ commit, subject });

async function listCommits(
  git: Git,
  { onto, tip }: { onto: string; tip: string },
): Promise<readonly ListedCommit[]> {
  const args = ['rev-list', '--reverse', '--topo-order', '--no-commit-header', '--format=%H %P%n%s'];
  const lines = (await git.ok([...args, `${onto}..${tip}`])).split('\n');
  return lines.flatMap((line, at) => {
    if (at % 2 === 1 || line === '') return [];
    const [commit = '', ...parents] = line.trimEnd().split(' ');
    return { commit, parents, subject: lines[at + 1] ?? '' };
  });
}

/** Lists commits, oldest first. */
export async function commitsBetween(
  git: Git,
  { from, to }: { readonly from: string; readonly to: string },
): Promise<readonly LandedCommit[]> {
  const output = await git.ok(['log', '--reverse', '-z', '--format=%H %s', `${from}..${to}`]);
  return output
    .split('\0')
    .filter(line => line !== '')
    .map(line => ({ commit: line.slice(0, line.indexOf(' ')), subject: line.slice(line.indexOf(' ') + 1) }));
}

/** A commit with its tree. */
interface CommitWithTree {
  readonly commit: string;
  readonly tree: string;
}

/** Replays commits that are already listed and contain no merge. */
export async function pickAll(
  git: Git,
  { onto, series }: { onto: string; series: readonly ListedCommit[] },
): Promise<ReplayedCommits> {
  const ids = [onto, ...series.flatMap(({ commit, parents }) => [commit, ...parents])];
  const records = await readCommits(git, [...new Set(ids)]);
  const commits: LandedCommit[] = [];
  let current: CommitWithTree = { commit: onto, tree: recordOf(records, onto).tree };
  for (const [index, listed] of series.entries()) {
    const picked = await pick(git, { listed, onto: current, records });
    if (picked.kind === 'conflict') return { ...picked, rest: series.slice(index + 1) };
    if (picked.kind === 'nothing') continue;
    current = picked;
    commits.push({ commit: picked.commit, subject: listed.subject });
  }
  return commits.length === 0 ? { kind: 'nothing' } : { kind: 'commit', commit: current.commit, commits };
}

type PickedCommit =
  | ({ readonly kind: 'commit' } & CommitWithTree)
  | Exclude<ReplayedCommits, { kind: 'commit' }>;

interface PickRequest {
  readonly listed: ListedCommit;
  readonly onto: CommitWithTree;
  readonly records: ReadonlyMap<string, CommitRecord>;
}

async function pick(
  git: Git,
  { listed: { commit: id, parents }, onto, records }: PickRequest,
): Promise<PickedCommit> {
  const source = recordOf(records, id);
  const [parent] = parents;
  if (parent === onto.commit) return { kind: 'commit', commit: id, tree: source.tree };
  // A commit with the tree of `onto` and the parent of `id` makes that parent the merge base, as in a cherry-pick.
  const side = { tree: onto.tree, parents, lines: stampLines, message: '' };
  const merged = await withTemporaryCommit(git, side, (inside, ours) => mergeTrees(inside, ours, id));
  if (merged.kind === 'conflict') {
    const { subject } = source;
    return { ...merged, at: onto.commit, commit: id, subject, rest: [], isWhole: false };
  }
  const wasEmpty = parent !== undefined && records.get(parent)?.tree === source.tree;
  const { tree } = merged;
  if (tree === onto.tree && !wasEmpty) return { kind: 'nothing' };
  return {
    kind: 'commit',
    commit: await writeCommit(git, { ...source, tree, parents: [onto.commit] }),
    tree,
  };
}

/**
 * Checks whether replaying without merge commits has lost changes that were made in a merge. If so, the whole branch
 * becomes a single commit, so that nothing is lost and history stays linear.
 */
async function withMerges(
  git: Git,
  { onto, tip, result }: { onto: string; tip: string; result: ReplayedCommits },
): Promise<ReplayedCommits> {
  const grown = result.kind === 'commit' ? [result.commit] : [];
  const records = await readCommits(git, [onto, tip, ...grown]);
  const source = recordOf(records, tip);
  const merged = await mergeTrees(git, onto, tip);
  if (merged.kind === 'conflict')
    return { ...merged, at: onto, commit: tip, subject: source.subject, rest: [], isWhole: true };
  if (merged.tree === recordOf(records, onto).tree) return { kind: 'nothing' };
  if (result.kind === 'commit' && recordOf(records, result.commit).tree === merged.tree) return result;
  const { subject, ...text } = await asOneCommit(git, { onto, tip });
  const commit = await writeCommit(git, { ...text, tree: merged.tree, parents: [onto] });
  return { kind: 'commit', commit, commits: [{ commit, subject }] };
}

/** Describes a branch as a single commit: by the author of its tip, with the subjects of all its commits. */
export async function asOneCommit(
  git: Git,
  { onto, tip }: { onto: string; tip: string },
): Promise<Pick<CommitRecord, 'lines' | 'message' | 'subject'>> {
  const source = recordOf(await readCommits(git, [tip]), tip);
  const subjects = await git.ok(['log', '--reverse', '--no-merges', '--format=%s', `${onto}..${tip}`]);
  const [first = source.subject, ...others] = subjects.split('\n').filter(line => line !== '');
  const message = [first, ...(others.length > 0 ? ['', ...others.map(line => `- ${line}`)] : []), ''].join(
    '\n',
  );
  return {
    lines: source.lines.filter(line => !line.startsWith('encoding ')),
    message: Buffer.from(message).toString('latin1'),
    subject: first,
  };
}

export type MergeResult = { readonly kind: 'clean'; readonly tree: string } | ConflictedMerge;

export interface ConflictedMerge {
  readonly kind: 'conflict';
  readonly files: readonly string[];
  /** Tree whose files contain conflict markers. */
  readonly tree: string;
  /** Versions of these files in the common base (1), ours (2) and theirs (3), as far as they exist. */
  readonly stages: readonly ConflictStage[];
  /** Commits whose ids are the labels of the markers. */
  readonly sides: { readonly ours: string; readonly theirs: string };
}

export interface ConflictStage {
  readonly path: string;
  readonly stage: 1 | 2 | 3;
  readonly mode: string;
  readonly id: string;
}

export async function mergeTrees(git: Git, ours: string, theirs: string): Promise<MergeResult> {
  const args = ['merge-tree', '--write-tree', '--allow-unrelated-histories', '--no-messages'];
  // Conflicts must look the same whatever the user's settings are.
  const style = ['-c', 'merge.conflictStyle=merge'];
  const result = await git.run([...style, ...args, '-z', ours, theirs]);
  const [tree = '', ...entries] = result.stdout.split('\0');
  if (result.code === 0) return { kind: 'clean', tree };
  if (result.code !== 1) throw gitFailed(args, result);
  const stages = entries.filter(entry => entry !== '').map(toStage);
  const files = [...new Set(stages.map(({ path }) => path))].sort();
  return { kind: 'conflict', files, tree, stages, sides: { ours, theirs } };
}

/** Parses an entry such as `100644 <id> 2<tab>a.txt`. */
function toStage(entry: string): ConflictStage {
  const tab = entry.indexOf('\t');
  const [mode = '', id = '', stage] = entry.slice(0, tab).split(' ');
  return { path: entry.slice(tab + 1), stage: stage === '1' ? 1 : stage === '2' ? 2 : 3, mode, id };
}

export function recordOf(records: ReadonlyMap<string, CommitRecord>, id: string): CommitRecord {
  const record = records.get(id);
  if (record) return record;
  throw new RepriseError('GIT_FAILED', `commit ${id} is not in the repository`, {
    hint: 'check what else is missing: git fsck',
  });
}

/** Runs the body with a git that knows one more commit, which is not stored in the repository. */
async function withTemporaryCommit<T>(
  git: Git,
  commit: CommitText,
  body: (inside: Git, id: string) => Promise<T>,
): Promise<T> {
  const folder = temporaryFolder('commit');
  try {
    const id = await writeCommit(git.with({ env: { GIT_OBJECT_DIRECTORY: folder } }), commit);
    return await body(git.with({ env: { GIT_ALTERNATE_OBJECT_DIRECTORIES: quotedPath(folder) } }), id);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
