import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Git } from '../git.ts';
import type { Repository } from '../repository.ts';

/** State of a worktree, as JSON data. The objects that it refers to are stored in a pack next to it. */
export interface WorktreeState {
  readonly head: HeadState;
  /** Tree of all files that git does not ignore, with their unconverted bytes. */
  readonly tree: string;
  readonly index: IndexState;
  /** Stashes, newest first as in `git stash list`. All worktrees of a repository share them. */
  readonly stashes: readonly Stash[];
  /** Innermost folders that contain no file. */
  readonly emptyFolders: readonly string[];
  /** New values of moved refs other than the branch of `head`. `null` for a deleted ref. */
  readonly refs: Readonly<Record<string, string | null>>;
}

export interface HeadState {
  /** `null` before the first commit of a branch. */
  readonly commit: string | null;
  /** `null` if HEAD is detached. */
  readonly branch: string | null;
}

interface IndexState {
  readonly tree: string;
  /** Files that were added with `git add --intent-to-add`. The tree does not contain them. */
  readonly intentToAdd: readonly string[];
}

interface Stash {
  readonly commit: string;
  readonly message: string;
}

/** Whether commit, files and index are the same, so that the changes of a session apply without a merge. */
export const isSameBase = (one: WorktreeState, other: WorktreeState): boolean =>
  one.head.commit === other.head.commit && one.tree === other.tree && isSameIndex(one.index, other.index);

export const isSameIndex = (one: IndexState, other: IndexState): boolean =>
  one.tree === other.tree && isSameList(one.intentToAdd, other.intentToAdd);

const isSameList = (one: readonly string[], other: readonly string[]): boolean =>
  one.length === other.length && one.every((name, i) => name === other[i]);

export const isSameStashes = (one: readonly Stash[], other: readonly Stash[]): boolean =>
  isSameList(one.map(stashKey), other.map(stashKey));

/** Returns the stashes that the session added. */
export const newStashes = (before: WorktreeState, after: WorktreeState): readonly Stash[] =>
  without(after.stashes, before.stashes, stashKey);

/** Applies the changes between `before` and `after` to another list. */
function carriedList<T>(
  current: readonly T[],
  { before, after, key }: { before: readonly T[]; after: readonly T[]; key: (item: T) => string },
): readonly T[] {
  if (isSameList(current.map(key), before.map(key))) return after;
  const dropped = without(before, after, key);
  const added = without(without(after, before, key), current, key);
  return [...added, ...without(current, dropped, key)];
}

const stashKey = ({ commit, message }: Stash): string => `${commit} ${message}`;

function without<T>(items: readonly T[], others: readonly T[], key: (item: T) => string): readonly T[] {
  const excluded = new Set(others.map(key));
  return items.filter(item => !excluded.has(key(item)));
}

/** States of a worktree before and after a session, and of the worktree that the session is applied to. */
export interface CarryRequest {
  readonly before: WorktreeState;
  readonly after: WorktreeState;
  readonly current: WorktreeState;
}

/** Carries over the parts of a state that need no merge: everything except commits, files and index. */
export function carryRest(
  { before, after, current }: CarryRequest,
  newName: (commit: string) => string,
): Pick<WorktreeState, 'head' | 'stashes' | 'emptyFolders' | 'refs'> {
  const renamed = (stash: Stash): Stash => ({ ...stash, commit: newName(stash.commit) });
  const isOwnBranch = (ref: string) => before.head.branch !== null && ref === branchRef(before.head.branch);
  // A session that stayed on its branch moves the branch of the other worktree, whatever its name.
  const branch = after.head.branch === before.head.branch ? current.head.branch : after.head.branch;
  const ownRef = current.head.branch === null ? undefined : branchRef(current.head.branch);
  return {
    head: { commit: after.head.commit === null ? null : newName(after.head.commit), branch },
    stashes: carriedList(current.stashes, {
      before: before.stashes,
      after: after.stashes.map(stash => (before.stashes.some(isEqualTo(stash)) ? stash : renamed(stash))),
      key: stashKey,
    }),
    emptyFolders: [
      ...carriedList(current.emptyFolders, {
        before: before.emptyFolders,
        after: after.emptyFolders,
        key: folder => folder,
      }),
    ].sort(),
    refs: Object.fromEntries(
      Object.entries(after.refs).map(([name, value]) => [
        isOwnBranch(name) ? (ownRef ?? name) : name,
        value === null ? null : newName(value),
      ]),
    ),
  };
}

const isEqualTo =
  (stash: Stash) =>
  (other: Stash): boolean =>
    stashKey(stash) === stashKey(other);

export const branchRef = (branch: string): string => `refs/heads/${branch}`;

/** Whether there may be stashes. They are in a reflog, which is a file unless git keeps its refs in tables. */
export const hasStashes = ({ commonDir }: Pick<Repository, 'commonDir'>): boolean =>
  ['logs/refs/stash', 'reftable'].some(name => existsSync(join(commonDir, name)));

/** Returns the stashes, newest first. */
export async function stashesOf(git: Git): Promise<readonly Stash[]> {
  const { stdout } = await git.run(['log', '--walk-reflogs', '-z', '--format=%H %gs', 'refs/stash', '--']);
  return stdout
    .split('\0')
    .filter(line => line !== '')
    .map(line => ({ commit: line.slice(0, line.indexOf(' ')), message: line.slice(line.indexOf(' ') + 1) }));
}

/** Replaces the list of stashes. If the new list only adds stashes on top, the others stay untouched. */
export async function setStashes(
  git: Git,
  { current, wanted }: { current: readonly Stash[]; wanted: readonly Stash[] },
): Promise<void> {
  const added = wanted.length - current.length;
  const isOnTop = added >= 0 && isSameStashes(wanted.slice(added), current);
  if (!isOnTop) await git.ok(['stash', 'clear']);
  const missing = isOnTop ? wanted.slice(0, added) : wanted;
  for (const { commit, message } of [...missing].reverse())
    await git.ok(['stash', 'store', '--quiet', `--message=${message}`, commit]);
}
