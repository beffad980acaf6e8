import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { namesIn, readIfThere } from './files.ts';
import { type LockRequest, withRepositoryLock } from './lock.ts';
import { plainRootOf } from './plain-repository.ts';
import { readHead } from './refs.ts';
import type { Repository } from './repository.ts';
import { shellWord } from './words.ts';
import { worktreeEntries } from './workspace/entries.ts';

export interface CheckoutRequest extends Omit<LockRequest, 'name'> {
  readonly branch: string;
}

/** Where a branch is checked out, and whether it can be moved there. */
export type BranchCheckout =
  | { readonly kind: 'nowhere' }
  | { readonly kind: 'at'; readonly path: string }
  | { readonly kind: 'busy'; readonly path: string; readonly why: string; readonly hint: string };

/**
 * Takes the lock `worktrees`: git cannot list worktrees while another process is adding one, whose files are not all
 * there yet.
 */
export function checkoutOfBranch(request: CheckoutRequest): Promise<BranchCheckout> {
  return withRepositoryLock({ ...request, name: 'worktrees' }, held => find(held.repository, request.branch));
}

async function find(repository: Repository, branch: string): Promise<BranchCheckout> {
  const rebased = rebaseOf(repository, branch);
  if (rebased !== undefined) {
    return {
      kind: 'busy',
      path: rebased,
      why: `${branch} is being rebased`,
      hint: 'finish the rebase (git rebase --continue) or give it up (git rebase --abort), then land again',
    };
  }
  const [first, second] = await pathsOn(repository, branch);
  if (first === undefined) return { kind: 'nowhere' };
  if (second === undefined) return { kind: 'at', path: first };
  return {
    kind: 'busy',
    path: second,
    why: `${branch} is checked out twice: in ${first} and in ${second}`,
    hint: `switch one of them to another branch: git -C ${shellWord(second)} switch --detach`,
  };
}

/** A worktree whose folder was deleted holds nothing back. */
const pathsOn = async (repository: Repository, branch: string): Promise<readonly string[]> =>
  pathsInFiles(repository, branch) ?? askForPaths(repository, branch);

/** `undefined`: files do not tell, and git has to be asked. */
function pathsInFiles(repository: Repository, branch: string): readonly string[] | undefined {
  const { commonDir } = repository;
  const root = plainRootOf(commonDir);
  if (root === undefined) return undefined;
  const places = [{ path: root, gitDir: commonDir, missing: false }, ...worktreeEntries(repository)];
  const heads = places
    .filter(({ missing }) => !missing)
    .map(place => ({ ...place, head: readHead(place.gitDir) }));
  if (heads.some(({ head }) => head === undefined)) return undefined;
  return heads.flatMap(({ path, head }) => (head?.kind === 'branch' && head.branch === branch ? path : []));
}

async function askForPaths({ git }: Repository, branch: string): Promise<readonly string[]> {
  const output = await git.ok(['worktree', 'list', '--porcelain', '-z']);
  return output.split('\0\0').flatMap(text => {
    const fields = text.split('\0');
    const path = fields.find(field => field.startsWith('worktree '))?.slice('worktree '.length);
    return path !== undefined && fields.includes(`branch refs/heads/${branch}`) && existsSync(path)
      ? path
      : [];
  });
}

/**
 * Whether a worktree has the branch checked out, apart from the one whose git folder is given. Reads files only, where
 * refs are files. To be called with the lock `worktrees`.
 */
export async function isCheckedOut(repository: Repository, branch: string, apart?: string): Promise<boolean> {
  const others = gitDirsOf(repository).filter(gitDir => gitDir !== apart);
  const heads = others.map(gitDir => readIfThere(join(gitDir, 'HEAD'))?.trim());
  // What stands there when refs are kept in tables.
  if (!heads.includes('ref: refs/heads/.invalid')) return heads.includes(`ref: refs/heads/${branch}`);
  return (await pathsOn(repository, branch)).length > (apart === undefined ? 0 : 1);
}

/** While a branch is rebased HEAD is detached, so that the branch looks free, and the end of the rebase moves it. */
function rebaseOf(repository: Repository, branch: string): string | undefined {
  return gitDirsOf(repository).find(gitDir =>
    ['rebase-merge', 'rebase-apply'].some(
      kind => readIfThere(join(gitDir, kind, 'head-name'))?.trim() === `refs/heads/${branch}`,
    ),
  );
}

function gitDirsOf({ commonDir }: Repository): readonly string[] {
  const linked = join(commonDir, 'worktrees');
  return [commonDir, ...namesIn(linked).map(name => join(linked, name))];
}
