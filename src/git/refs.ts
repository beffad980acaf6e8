import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { RepriseError } from '../core/index.ts';
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

interface FilesAtRequest {
  readonly git: Git;
  readonly commit: string;
  /** From the top of the repository, with slashes; `.` is the top. */
  readonly folder: string;
  /** Larger files are listed without their text. */
  readonly maxBytes?: number | undefined;
}

interface FileAt {
  /** From the top of the repository. */
  readonly path: string;
  /** The id of its content: the same as long as the text is the same. */
  readonly blob: string;
  readonly bytes: number;
  /** `undefined` if it is too large. */
  readonly text: string | undefined;
}

const oneMegabyte = 1024 * 1024;

/**
 * The files directly in a folder as a commit has them, by name; none if it has no such folder. Folders, links and
 * submodules are left out. Two processes, however many files there are. Throws GIT_FAILED if there is no such commit.
 */
export async function readFilesAt({
  git,
  commit,
  folder,
  maxBytes = oneMegabyte,
}: FilesAtRequest): Promise<readonly FileAt[]> {
  const top = folder.replace(/^(\.?\/)+|\/+$/g, '');
  const below = top === '' || top === '.' ? [] : [`${top}/`];
  const list = ['--literal-pathspecs', 'ls-tree', '-z', '--long', '--full-tree', commit, '--', ...below];
  const files = (await git.ok(list)).split('\0').flatMap(toFile);
  const texts = await readBlobs(
    git,
    files.filter(({ bytes }) => bytes <= maxBytes).map(({ blob }) => blob),
  );
  return files.map(file => ({ ...file, text: texts.get(file.blob) }));
}

/** Such as `100644 blob <id>      12<tab>issues/a.md`. */
function toFile(entry: string): Omit<FileAt, 'text'> | [] {
  const tab = entry.indexOf('\t');
  const [mode, type, blob = '', bytes] = entry.slice(0, tab).split(/ +/);
  const isFile = type === 'blob' && mode !== '120000';
  return isFile ? { path: entry.slice(tab + 1), blob, bytes: Number(bytes) } : [];
}

async function readBlobs(git: Git, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  const wanted = [...new Set(ids)];
  if (wanted.length === 0) return texts;
  const input = wanted.map(id => `${id}\n`).join('');
  const output = await git.ok(['cat-file', '--batch'], { input, encoding: 'bytes' });
  let at = 0;
  for (const id of wanted) {
    const start = output.indexOf('\n', at) + 1;
    const size = Number(output.slice(at, start).trimEnd().split(' ')[2]);
    texts.set(id, Buffer.from(output.slice(start, start + size), 'latin1').toString());
    at = start + size + 1;
  }
  return texts;
}

/** What can be read of branches without a checkout. Something else can stand in for a repository. */
export interface Branches {
  /** `null` if there is no such branch, or it has no commit. */
  tip(branch: string): Promise<string | null>;
  /** The same for whoever cannot wait; `undefined` if git would have to be asked. */
  tipNow(branch: string): string | null | undefined;
  /** The files directly in a folder, as a commit has them. */
  filesAt(place: { readonly commit: string; readonly folder: string }): Promise<readonly FileAt[]>;
}

/** A repository that is opened when it is needed; `known`: what can be told of it before. */
interface RepositoryOpener {
  (): Promise<Repository>;
  known?(): Pick<Repository, 'commonDir'> | undefined;
}

export const branchesOf = (repository: RepositoryOpener): Branches => ({
  tip: async branch => (await branchTip(await repository(), branch)) ?? null,
  tipNow: branch => {
    const known = repository.known?.();
    return known && tipInFiles(known.commonDir, branch);
  },
  filesAt: async place => readFilesAt({ git: (await repository()).git, ...place }),
});

/**
 * The commit that a run begins from, to be asked once: branches move while it goes on. Throws WORKSPACE_FAILED if there
 * is no such commit.
 */
export async function resolveBase({ git, root, commonDir }: Repository, name = 'HEAD'): Promise<string> {
  if (/^[0-9a-f]{40}([0-9a-f]{24})?$/.test(name)) return name;
  const commit = await resolveCommit(git, name);
  if (commit !== undefined) return commit;
  if ((await resolveCommit(git, 'HEAD')) === undefined) {
    throw new RepriseError('WORKSPACE_FAILED', `${root ?? commonDir} has no commit to begin from`, {
      hint: 'make one first: git commit --allow-empty -m "Begin"',
    });
  }
  throw new RepriseError('WORKSPACE_FAILED', `${JSON.stringify(name)} is no commit to begin from`, {
    hint: 'name a branch, a tag or a commit; git branch --all lists the branches',
  });
}
