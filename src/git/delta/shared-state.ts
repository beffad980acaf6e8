import type { Git } from '../git.ts';
import type { WorktreeState } from './state.ts';

/** State that all worktrees of a repository share. A session in one worktree should not change it. */
export interface RepositoryState {
  /** Object ids by the name of their ref. */
  readonly refs: Readonly<Record<string, string>>;
  /** Folders of all worktrees. */
  readonly worktrees: readonly string[];
  /** Values of the settings of the repository, by key. Never recorded, because they may contain secrets. */
  readonly config: Readonly<Record<string, readonly string[]>>;
}

export interface ChangedRef {
  readonly name: string;
  /** `null` if the ref did not exist. */
  readonly before: string | null;
  /** `null` if the ref was deleted. */
  readonly after: string | null;
}

/** Changes outside of a worktree. Settings are listed without their values, which may contain secrets. */
export interface SharedChanges {
  readonly refs: readonly ChangedRef[];
  readonly worktreesAdded: readonly string[];
  readonly worktreesRemoved: readonly string[];
  readonly settings: readonly string[];
}

export async function sharedState(git: Git): Promise<RepositoryState> {
  const [refs, worktrees, config] = await Promise.all([
    git.ok(['for-each-ref', '--format=%(objectname) %(refname)']),
    git.ok(['worktree', 'list', '--porcelain', '-z']),
    git.ok(['config', '--local', '--list', '-z']),
  ]);
  return {
    refs: Object.fromEntries(lines(refs, '\n').map(line => pair(line, ' ').reverse())),
    worktrees: lines(worktrees, '\0')
      .filter(line => line.startsWith('worktree '))
      .map(line => line.slice('worktree '.length))
      .sort(),
    config: grouped(lines(config, '\0').map(line => pair(line, '\n'))),
  };
}

const lines = (text: string, end: string): readonly string[] => text.split(end).filter(line => line !== '');

function pair(line: string, separator: string): [string, string] {
  const at = line.indexOf(separator);
  return at === -1 ? [line, ''] : [line.slice(0, at), line.slice(at + separator.length)];
}

function grouped(pairs: readonly [string, string][]): Readonly<Record<string, readonly string[]>> {
  const groups = new Map<string, string[]>();
  for (const [key, value] of pairs) groups.set(key, [...(groups.get(key) ?? []), value]);
  return Object.fromEntries(groups);
}

/** Returns all changes except those of expected refs: the session's own branch and the branches of other workers. */
export function changedRefs(
  before: RepositoryState,
  after: RepositoryState,
  expected: (ref: string) => boolean = () => false,
): SharedChanges {
  const names = [...new Set([...Object.keys(before.refs), ...Object.keys(after.refs)])].sort();
  const keys = [...new Set([...Object.keys(before.config), ...Object.keys(after.config)])].sort();
  return {
    refs: names
      .filter(name => !expected(name))
      .map(name => ({ name, before: before.refs[name] ?? null, after: after.refs[name] ?? null }))
      .filter(change => change.before !== change.after),
    worktreesAdded: after.worktrees.filter(folder => !before.worktrees.includes(folder)),
    worktreesRemoved: before.worktrees.filter(folder => !after.worktrees.includes(folder)),
    settings: keys.filter(key => JSON.stringify(before.config[key]) !== JSON.stringify(after.config[key])),
  };
}

/** Adds the refs that the session moved besides its branch, so that they are packed and restored with the state. */
export function withRefs(state: WorktreeState, changes: readonly ChangedRef[]): WorktreeState {
  const own = new Set([
    'refs/stash',
    ...(state.head.branch === null ? [] : [`refs/heads/${state.head.branch}`]),
  ]);
  const refs = changes.filter(({ name }) => !own.has(name)).map(({ name, after }) => [name, after] as const);
  return { ...state, refs: { ...state.refs, ...Object.fromEntries(refs) } };
}
