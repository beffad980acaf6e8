import type { Git } from './git.ts';

export interface WorktreeStatus {
  /** Paths that differ from what is checked out, and untracked ones, by name; what git ignores is not among them. */
  readonly uncommitted: readonly string[];
  /** The commit of a HEAD that is on no branch. */
  readonly detachedAt: string | undefined;
}

/** How a worktree stands. Changes nothing, not even the index. */
export async function worktreeStatus(git: Git): Promise<WorktreeStatus> {
  const args = ['status', '--porcelain=v2', '--branch', '-z', '--no-renames', '--untracked-files=all'];
  const lines = (await git.ok(args)).split('\0').filter(line => line !== '');
  const header = (name: string) => lines.find(line => line.startsWith(`# ${name} `))?.slice(name.length + 3);
  return {
    uncommitted: lines.flatMap(line => pathIn(line) ?? []).sort(),
    detachedAt: header('branch.head') === '(detached)' ? header('branch.oid') : undefined,
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
