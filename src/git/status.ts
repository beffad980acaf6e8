import type { Git } from './git.ts';

export interface WorktreeStatus {
  /** Paths that differ from what is checked out, and untracked ones, by name; what git ignores is not among them. */
  readonly uncommitted: readonly string[];
  /** Those of them that a merge left unresolved. */
  readonly unmerged: readonly string[];
  /** Those of them that are repositories of their own. */
  readonly embedded: readonly string[];
  /** The commit that is checked out; undefined before the first. */
  readonly head: string | undefined;
  /** The branch that is checked out. */
  readonly branch: string | undefined;
  /** The commit of a HEAD that is on no branch. */
  readonly detachedAt: string | undefined;
}

/** How a worktree stands, or one folder of it, from its top. Changes nothing, not even the index. */
export async function worktreeStatus(git: Git, folder?: string): Promise<WorktreeStatus> {
  const within = folder === undefined ? [] : ['--', `:(top,literal)${folder}`];
  const args = [
    'status',
    '--porcelain=v2',
    '--branch',
    '-z',
    '--no-renames',
    '--untracked-files=all',
    ...within,
  ];
  const lines = (await git.ok(args)).split('\0').filter(line => line !== '');
  const header = (name: string) => lines.find(line => line.startsWith(`# ${name} `))?.slice(name.length + 3);
  const pathsOf = (wanted: (line: string) => boolean) =>
    lines.filter(wanted).flatMap(line => pathIn(line) ?? []);
  const name = header('branch.head');
  const oid = header('branch.oid');
  const head = oid === '(initial)' ? undefined : oid;
  const isDetached = name === '(detached)';
  return {
    uncommitted: pathsOf(() => true).sort(),
    unmerged: pathsOf(line => line.startsWith('u ')),
    embedded: pathsOf(line => line.startsWith('? ') && line.endsWith('/')),
    head,
    branch: isDetached ? undefined : name,
    detachedAt: isDetached ? head : undefined,
  };
}

export const uncommittedFiles = async (git: Git): Promise<readonly string[]> =>
  (await worktreeStatus(git)).uncommitted;

/** The path follows a number of fields that depends on the kind of entry, and may hold spaces itself. */
const fieldsBefore: Readonly<Record<string, number>> = { '1': 8, u: 10, '?': 1 };

function pathIn(line: string): string | undefined {
  const fields = fieldsBefore[line.charAt(0)];
  return fields === undefined ? undefined : line.split(' ').slice(fields).join(' ');
}
