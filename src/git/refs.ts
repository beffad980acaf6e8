import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { readIfThere } from './files.ts';
import type { Git } from './git.ts';
import { isBranchName } from './names.ts';
import { type Repository, resolveCommit } from './repository.ts';

/** The private git folder of a worktree, and that which all share. */
export interface GitFolders {
  readonly gitDir: string;
  readonly commonDir: string;
}

/** What is checked out. */
export interface Head {
  readonly commit: string;
  /** `undefined`: none, HEAD is at the commit itself. */
  readonly branch: string | undefined;
}

/** The tip of a branch; `undefined` if there is none of that name. Most branches are a file, which spares a process. */
export const branchTip = async (
  { git, commonDir }: Pick<Repository, 'git' | 'commonDir'>,
  branch: string,
): Promise<string | undefined> => looseTip(commonDir, branch) ?? resolveCommit(git, `refs/heads/${branch}`);

/** `undefined`: there is no such branch, or git keeps it elsewhere. A file, if there is one, always counts. */
export function looseTip(commonDir: string, branch: string): string | undefined {
  const text = isBranchName(branch)
    ? readIfThere(join(commonDir, 'refs/heads', branch))?.trimEnd()
    : undefined;
  return text !== undefined && isId(text) ? text : undefined;
}

/** The tip of a branch as files tell it; `null` if they know of none. For whoever cannot wait for git. */
export function tipInFiles(commonDir: string, branch: string): string | null {
  const loose = looseTip(commonDir, branch);
  if (loose !== undefined) return loose;
  const ref = ` refs/heads/${branch}`;
  const line = readIfThere(join(commonDir, 'packed-refs'))
    ?.split('\n')
    .find(each => each.endsWith(ref));
  return line === undefined ? null : line.slice(0, -ref.length);
}

/** What HEAD says. */
export type HeadFile =
  | { readonly kind: 'branch'; readonly branch: string }
  | { readonly kind: 'commit'; readonly commit: string };

/** `undefined`: files do not tell, and git has to be asked. */
export function readHead(gitDir: string): HeadFile | undefined {
  const file = join(gitDir, 'HEAD');
  // Before there were refs that name refs, HEAD was a link to the file of a branch.
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() !== true) return undefined;
  const text = readIfThere(file)?.trimEnd() ?? '';
  if (isId(text)) return { kind: 'commit', commit: text };
  const branch = /^ref: refs\/heads\/(.+)$/.exec(text)?.[1];
  // That name stands there when refs are kept in tables.
  return branch === undefined || branch === '.invalid' ? undefined : { kind: 'branch', branch };
}

/** `undefined`: files do not tell, and git has to be asked. */
export function headInFiles({ gitDir, commonDir }: GitFolders): Head | undefined {
  const head = readHead(gitDir);
  if (head?.kind !== 'branch') return head && { commit: head.commit, branch: undefined };
  const commit = looseTip(commonDir, head.branch);
  return commit === undefined ? undefined : { commit, branch: head.branch };
}

/**
 * The commit that is checked out. Where git keeps it in files, as it does right after a commit, no process is started.
 * Throws GIT_FAILED if there is none.
 */
export const headCommit = async (git: Git, folders: GitFolders | undefined): Promise<string> =>
  (folders && headInFiles(folders)?.commit) ?? (await git.line(['rev-parse', 'HEAD']));

const isId = (text: string): boolean => /^[0-9a-f]{40}([0-9a-f]{24})?$/.test(text);
