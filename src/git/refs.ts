import { isUtf8 } from 'node:buffer';
import { RepriseError } from '../core/index.ts';
import { type Git, type GitPlace, gitNow, lastLines, withoutNewline } from './git.ts';
import { branchPrefix, isBranchName, shellWord } from './names.ts';
import type { Repository } from './repository.ts';

/** Returns the tip of a branch, or `undefined` if there is no such branch. */
export const branchTip = async (
  { git }: Pick<Repository, 'git'>,
  branch: string,
): Promise<string | undefined> =>
  isBranchName(branch) ? resolveCommit(git, `refs/heads/${branch}`) : undefined;

/** A branch, with the branch that it leads to if it is a symbolic ref, or else with its own name. */
interface BranchTarget {
  readonly commit: string;
  readonly branch: string;
}

/** Returns those branches that exist, with a single process. */
export async function branchTargets(
  { git }: Pick<Repository, 'git'>,
  branches: readonly string[],
): Promise<ReadonlyMap<string, BranchTarget>> {
  const refs = branches.filter(isBranchName).map(branch => `refs/heads/${branch}`);
  if (refs.length === 0) return new Map();
  const output = await git.ok(['for-each-ref', '--format=%(objectname) %(refname) %(symref)', ...refs]);
  const lines = output.split('\n').filter(line => line !== '');
  return new Map(
    lines.map(line => {
      const [commit = '', ref = '', symref = ''] = line.split(' ');
      return [withoutHeads(ref), { commit, branch: withoutHeads(symref || ref) }];
    }),
  );
}

const withoutHeads = (ref: string): string => ref.replace(/^refs\/heads\//, '');

/** Returns the id of a commit, or `undefined` if the name does not denote one. Safe for any name. */
export async function resolveCommit(git: Git, name: string): Promise<string | undefined> {
  const { code, stdout } = await git.run([
    'rev-parse',
    '--verify',
    '--quiet',
    '--end-of-options',
    `${name}^{commit}`,
  ]);
  return code === 0 ? withoutNewline(stdout) : undefined;
}

/** Commit that is checked out. */
interface Head {
  readonly commit: string;
  /** Name of the branch; `undefined` if HEAD is detached. */
  readonly branch: string | undefined;
}

/** Returns commit and branch of HEAD with a single process, or `undefined` before the first commit. */
export async function readHead(git: Git): Promise<Head | undefined> {
  const { stdout } = await git.run(['rev-parse', '--revs-only', 'HEAD', '--symbolic-full-name', 'HEAD']);
  const [commit = '', ref = ''] = stdout.split('\n');
  return commit === '' ? undefined : { commit, branch: /^refs\/heads\/(.+)$/.exec(ref)?.[1] };
}

interface FilesAtRequest {
  readonly git: Git;
  readonly commit: string;
  /** Path from the top of the repository, with slashes; `.` is the top. */
  readonly folder: string;
  /** Size above which a file is listed without its text. Defaults to one megabyte. */
  readonly maxBytes?: number | undefined;
}

interface FileAt {
  /** Path from the top of the repository. */
  readonly path: string;
  /** Object id of the content. */
  readonly blob: string;
  readonly bytes: number;
  /** Content; `undefined` if the file is too large. */
  readonly text: string | undefined;
}

const oneMegabyte = 1024 * 1024;

/**
 * Reads the files directly in a folder of a commit, sorted by name. Omits folders, symbolic links and submodules. Runs at
 * most two processes. Throws GIT_FAILED if there is no such commit.
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

/** Parses an entry such as `100644 blob <id>      12<tab>issues/a.md`. */
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
    const bytes = Buffer.from(output.slice(start, start + size), 'latin1');
    // A file in another encoding is most likely Latin-1, and its text stays readable.
    texts.set(id, bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1'));
    at = start + size + 1;
  }
  return texts;
}

/** Read access to branches. The model of a repository implements it too. */
export interface Branches {
  /** Returns the tip of a branch, or `null` if there is no such branch. */
  tip(branch: string): Promise<string | null>;
  /** The same, synchronously, for a scheduler that cannot wait; `undefined` if the tip is unknown. */
  tipNow(branch: string): string | null | undefined;
  /** Reads the files directly in a folder of a commit. */
  filesAt(place: { readonly commit: string; readonly folder: string }): Promise<readonly FileAt[]>;
}

/** Reads branches of a repository. Without a place, `tipNow` knows nothing. */
export const branchesOf = (repository: () => Promise<Repository>, place?: GitPlace): Branches => ({
  tip: async branch => (await branchTip(await repository(), branch)) ?? null,
  tipNow: branch =>
    place && (gitNow(place, ['rev-parse', '--verify', '--quiet', `refs/heads/${branch}^{commit}`]) ?? null),
  filesAt: async place => readFilesAt({ git: (await repository()).git, ...place }),
});

/**
 * Resolves the commit that a run starts from. Branches move during the run, so it is resolved only once. Throws
 * WORKSPACE_FAILED if there is no such commit.
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

interface PushRequest {
  readonly git: Git;
  /** Name of the remote. */
  readonly remote: string;
  /** Branch of Reprise. It gets the same name on the remote. */
  readonly branch: string;
  readonly commit: string;
  readonly signal?: AbortSignal | undefined;
}

interface PushResult {
  readonly remote: string;
  readonly branch: string;
  readonly commit: string;
}

/**
 * Pushes a commit to a branch below `reprise/` on a remote. The branch is overwritten only if it is at the commit that this
 * repository last saw there. The user's hooks run. Throws CANNOT_LAND if the remote does not exist or rejects the push,
 * GIT_FAILED if it cannot be reached.
 */
export async function pushBranch({ git, remote, branch, commit, signal }: PushRequest): Promise<PushResult> {
  if (!isBranchName(branch) || !branch.startsWith(branchPrefix)) {
    throw refused(`cannot push ${JSON.stringify(branch)}: it is not a branch of Reprise`);
  }
  await refuseUnknownRemote(git, remote);
  const ref = `refs/heads/${branch}`;
  // Empty if this repository never saw the branch: then it must not exist on the remote.
  const seen = (await resolveCommit(git, `refs/remotes/${remote}/${branch}`)) ?? '';
  const lease = `--force-with-lease=${ref}:${seen}`;
  const args = ['push', '--porcelain', '--no-follow-tags', lease, '--', remote, `${commit}:${ref}`];
  const { code, stdout, stderr } = await git.run(args, { signal });
  if (code === 0) return { remote, branch, commit };
  const rejection = /^!\t\S+\t(.*)$/m.exec(stdout)?.[1];
  if (rejection === undefined) {
    throw new RepriseError('GIT_FAILED', `cannot push to ${remote}: ${lastLines(stderr)}`, {
      hint: `check the connection: git ls-remote ${shellWord(remote)}`,
    });
  }
  throw refused(
    `cannot push ${branch} to ${remote}: ${rejection}`,
    rejection.includes('stale info')
      ? `the branch has changed on the remote; check it first: git fetch ${shellWord(remote)} ${shellWord(branch)}`
      : `to see the reason: git push ${shellWord(remote)} ${shellWord(branch)}`,
  );
}

async function refuseUnknownRemote(git: Git, remote: string): Promise<void> {
  const names = (await git.ok(['remote'])).split('\n').filter(name => name !== '');
  if (names.includes(remote)) return;
  throw refused(
    `there is no remote ${JSON.stringify(remote)} to push to`,
    names.length === 0
      ? `add it: git remote add ${shellWord(remote)} <url>`
      : `use an existing remote (${names.join(', ')}), or add it: git remote add ${shellWord(remote)} <url>`,
  );
}

const refused = (message: string, hint?: string): RepriseError =>
  new RepriseError('CANNOT_LAND', message, hint === undefined ? {} : { hint });
