import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readIfThere } from '../files.ts';
import type { Git } from '../git.ts';
import type { Repository } from '../repository.ts';
import type { ShadowedWorktree } from './shadow.ts';

/** How a worktree stands, as data that fits on a line of JSON. What it names lies in a pack beside it. */
export interface WorktreeState {
  readonly head: HeadState;
  /** The tree of all files that git does not ignore, with their bytes as they are on disk. */
  readonly tree: string;
  readonly index: IndexState;
  /** Newest first, as `git stash list` has them. All worktrees of a repository share them. */
  readonly stashes: readonly Stash[];
  /** Folders without any file inside, innermost ones only. */
  readonly emptyFolders: readonly string[];
  /** Refs other than the branch of `head` that were moved, with their new value; `null` if it was deleted. */
  readonly refs: Readonly<Record<string, string | null>>;
}

export interface HeadState {
  /** `null` before the first commit of a branch. */
  readonly commit: string | null;
  /** `null` if it is detached. */
  readonly branch: string | null;
}

interface IndexState {
  readonly tree: string;
  /** Files that were announced with `git add --intent-to-add`; the tree does not have them. */
  readonly intentToAdd: readonly string[];
}

interface Stash {
  readonly commit: string;
  readonly message: string;
}

/** The same commit, files and index: what a session did to one of them can be done to the other as it is. */
export const isSameBase = (one: WorktreeState, other: WorktreeState): boolean =>
  one.head.commit === other.head.commit && one.tree === other.tree && isSameIndex(one.index, other.index);

export const isSameIndex = (one: IndexState, other: IndexState): boolean =>
  one.tree === other.tree && isSameList(one.intentToAdd, other.intentToAdd);

const isSameList = (one: readonly string[], other: readonly string[]): boolean =>
  one.length === other.length && one.every((name, i) => name === other[i]);

export const isSameStashes = (one: readonly Stash[], other: readonly Stash[]): boolean =>
  isSameList(one.map(stashKey), other.map(stashKey));

/** Commits that the session stashed. */
export const newStashes = (before: WorktreeState, after: WorktreeState): readonly Stash[] =>
  without(after.stashes, before.stashes, stashKey);

/** What a list becomes when that is done to it which made `before` into `after`. */
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

/** Three states: of a worktree before and after a session, and of the one in which it is to be repeated. */
export interface CarryRequest {
  readonly before: WorktreeState;
  readonly after: WorktreeState;
  readonly current: WorktreeState;
}

/** What is left when the files, the index and the commits have been carried over: that needs no merging. */
export function carryRest(
  { before, after, current }: CarryRequest,
  newName: (commit: string) => string,
): Pick<WorktreeState, 'head' | 'stashes' | 'emptyFolders' | 'refs'> {
  const renamed = (stash: Stash): Stash => ({ ...stash, commit: newName(stash.commit) });
  const isOwnBranch = (ref: string) => before.head.branch !== null && ref === branchRef(before.head.branch);
  // A session that stayed on its branch stays on it, whatever that branch is called here.
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

/** Newest first. Needs no process where refs are files. */
export async function stashesOf({ commonDir, git }: Repository): Promise<readonly Stash[]> {
  if (existsSync(join(commonDir, 'reftable'))) return askForStashes(git);
  const log = readIfThere(join(commonDir, 'logs', 'refs', 'stash')) ?? '';
  return log.split('\n').flatMap(readStash).reverse();
}

function readStash(line: string): readonly Stash[] {
  const [, commit, message = ''] = /^\S+ (\S+) [^\t]*(?:\t(.*))?$/.exec(line) ?? [];
  return commit === undefined ? [] : [{ commit, message }];
}

async function askForStashes(git: Git): Promise<readonly Stash[]> {
  const { stdout } = await git.run(['log', '--walk-reflogs', '-z', '--format=%H %gs', 'refs/stash', '--']);
  return stdout
    .split('\0')
    .filter(line => line !== '')
    .map(line => ({ commit: line.slice(0, line.indexOf(' ')), message: line.slice(line.indexOf(' ') + 1) }));
}

/** Makes the list of stashes another one. What both have at the end stays untouched. */
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

/** Settings of a repository and a machine do not change while sessions are recorded. */
const settings = new WeakMap<Repository, Promise<boolean>>();

/** Whether files on disk may differ from what is stored for them: ends of lines, filters, encodings. */
export async function convertsFiles({ repository, folder }: ShadowedWorktree): Promise<boolean> {
  const { commonDir } = repository;
  if (existsSync(join(folder, '.gitattributes')) || existsSync(join(commonDir, 'info', 'attributes')))
    return true;
  const known = settings.get(repository) ?? askSettings(repository);
  settings.set(repository, known);
  return known;
}

async function askSettings({ git }: Repository): Promise<boolean> {
  const args = ['config', '--get-regexp', '^(core\\.(autocrlf|eol|attributesfile)|filter\\..*)$'];
  return (await git.run(args)).code === 0;
}
