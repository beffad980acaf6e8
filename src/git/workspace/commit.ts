import { RepriseError, type Timestamp, toEpochMs } from '../../core/index.ts';
import { readLooseCommit } from '../commits.ts';
import { type ChangeCounts, printedCounts } from '../diff.ts';
import { type Git, type GitResult, gitFailed } from '../git.ts';
import { printable, shellWord } from '../names.ts';
import { untrackedFiles } from '../scratch-index.ts';

interface CommitAllRequest {
  /** If given, git is asked less about the new commit. */
  readonly commonDir?: string | undefined;
  /** Git in the workspace. */
  readonly git: Git;
  /** Branch of the workspace. If given, another branch that is checked out does not move. */
  readonly own?: string | undefined;
  /** Commit from which changes are counted. */
  readonly since?: string | undefined;
  readonly message: string;
  readonly author: { readonly name: string; readonly email: string };
  readonly at: Timestamp;
  readonly signal?: AbortSignal | undefined;
}

/** Commit and branch that are checked out afterwards, and whether the commit is new. */
export type CommitResult = { readonly commit: string; readonly branch: string | undefined } & (
  | { readonly kind: 'clean' }
  | {
      readonly kind: 'committed';
      /** Only parent of the commit; `undefined` if it has none or several. */
      readonly parent: string | undefined;
      /** Changes since the commit to count from; `undefined` if git did not print them. */
      readonly changes: ChangeCounts | undefined;
    }
);

/**
 * Commits all uncommitted changes, without running hooks. Throws WORKSPACE_FAILED, with nothing changed, if conflicts are
 * unresolved, or if the workspace contains another repository, whose files the commit would not include.
 */
export async function commitAll(request: CommitAllRequest): Promise<CommitResult> {
  const { git, own, since, signal } = request;
  const { head, branch, uncommitted, unmerged, embedded } = await worktreeStatus(git);
  if (unmerged.length > 0) throw unfinished(git, unmerged);
  if (embedded.length > 0) throw otherRepository(git.cwd, embedded);
  if (head !== undefined && uncommitted.length === 0) return { kind: 'clean', commit: head, branch };
  // An agent may have checked out the user's branch, which unverified work must not move.
  if (head !== undefined && branch !== undefined && own !== undefined && branch !== own)
    await git.ok(['update-ref', '--no-deref', 'HEAD', head], { hooks: 'skip' });
  await git.ok(['add', '--all'], { signal });
  const result = await commitIndex(git, request);
  // Staging may leave no difference, for example if only line endings changed that git converts.
  if (result.code !== 0 && head !== undefined && (await isNothingStaged(git)))
    return { kind: 'clean', commit: head, branch };
  if (result.code !== 0) throw gitFailed(commitCommand(request.message), result);
  const [commit = '', ...parents] =
    printedCommit(request, result.stdout) ??
    (await git.line(['log', '-1', '--format=%H %P'])).trimEnd().split(' ');
  const parent = parents.length === 1 ? parents[0] : undefined;
  const changes = since !== undefined && since === parent ? printedCounts(result.stdout) : undefined;
  return { kind: 'committed', commit, branch, parent, changes };
}

/** Returns the commit that `git commit` reports, with its parents; `undefined` if it cannot be read without git. */
function printedCommit(
  { commonDir }: Pick<CommitAllRequest, 'commonDir'>,
  stdout: string,
): readonly string[] | undefined {
  if (commonDir === undefined) return undefined;
  const [, id] = /^\[(?:.*? )?([0-9a-f]{40}|[0-9a-f]{64})\] /.exec(stdout) ?? [];
  const made = id === undefined ? undefined : readLooseCommit({ commonDir }, id);
  return id === undefined || made === undefined ? undefined : [id, ...made.parents];
}

/** If this process is killed before it has written the message, git must not take an empty message for the real one. */
const commitCommand = (message: string): readonly string[] => [
  ...['-c', 'core.abbrev=no', 'commit', '--cleanup=whitespace', '--file=-'],
  ...(message.trim() === '' ? ['--allow-empty-message'] : []),
];

type CommitDetails = Pick<CommitAllRequest, 'message' | 'author' | 'at' | 'signal'>;

function commitIndex(git: Git, { message, author, at, signal }: CommitDetails): Promise<GitResult> {
  const date = `@${Math.floor(toEpochMs(at) / 1000)} +0000`;
  const identity = {
    GIT_AUTHOR_NAME: author.name,
    GIT_AUTHOR_EMAIL: author.email,
    GIT_AUTHOR_DATE: date,
    GIT_COMMITTER_NAME: author.name,
    GIT_COMMITTER_EMAIL: author.email,
    GIT_COMMITTER_DATE: date,
  };
  return git.with({ env: identity }).run(commitCommand(message), { input: message, hooks: 'skip', signal });
}

const isNothingStaged = async (git: Git): Promise<boolean> =>
  (await git.run(['diff', '--cached', '--quiet', '--no-ext-diff'])).code === 0;

const unfinished = (git: Git, files: readonly string[]): RepriseError =>
  new RepriseError(
    'WORKSPACE_FAILED',
    `a merge in ${git.cwd} is unfinished: ${files.map(printable).join(', ')}`,
    { hint: `finish it, or abort it: git -C ${shellWord(git.cwd)} merge --abort` },
  );

/** Of another repository, a commit would contain at most the id of its HEAD. */
export const otherRepository = (path: string, folders: readonly string[]): RepriseError =>
  new RepriseError(
    'WORKSPACE_FAILED',
    `there is another repository in ${path}: ${folders.map(printable).join(', ')}`,
    { hint: 'move it out of the workspace, or remove its .git folder to commit its files' },
  );

/** Throws WORKSPACE_FAILED if the workspace contains another repository. */
export async function refuseEmbedded(git: Git): Promise<void> {
  const folders = (await untrackedFiles(git)).filter(name => name.endsWith('/')).map(asText);
  if (folders.length > 0) throw otherRepository(git.cwd, folders);
}

const asText = (bytes: string): string => Buffer.from(bytes, 'latin1').toString();

interface WorktreeStatus {
  /** Changed and untracked paths, sorted by name, without those that git ignores. */
  readonly uncommitted: readonly string[];
  /** Uncommitted paths with unresolved conflicts. */
  readonly unmerged: readonly string[];
  /** Uncommitted paths that are other repositories. */
  readonly embedded: readonly string[];
  /** Commit that is checked out; `undefined` before the first commit. */
  readonly head: string | undefined;
  /** Branch that is checked out; `undefined` if HEAD is detached. */
  readonly branch: string | undefined;
  /** Number of stashes, which all worktrees share. */
  readonly stashes: number;
}

/** Returns the status of a worktree, or of one folder below its top. Writes nothing, not even the index. */
export async function worktreeStatus(git: Git, folder?: string): Promise<WorktreeStatus> {
  const within = folder === undefined ? [] : ['--', `:(top,literal)${folder}`];
  const args = [
    'status',
    '--porcelain=v2',
    '--branch',
    '--show-stash',
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
    stashes: Number(header('stash') ?? 0),
  };
}

export const uncommittedFiles = async (git: Git): Promise<readonly string[]> =>
  (await worktreeStatus(git)).uncommitted;

/** Number of fields before the path, by the kind of entry. The path may contain spaces. */
const fieldsBefore: Readonly<Record<string, number>> = { '1': 8, u: 10, '?': 1 };

function pathIn(line: string): string | undefined {
  const fields = fieldsBefore[line.charAt(0)];
  return fields === undefined ? undefined : line.split(' ').slice(fields).join(' ');
}
