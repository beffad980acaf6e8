import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { RepriseError } from '../../core/errors.ts';
import { type Timestamp, toEpochMs } from '../../core/time.ts';
import { type ChangeCounts, printedCounts } from '../changes.ts';
import { type Git, type GitResult, gitFailed } from '../git.ts';
import { removeIfThere } from '../lock-file.ts';
import { type GitFolders, headCommit } from '../refs.ts';
import { trustIndex, untrackedFiles } from '../side-index.ts';
import { stageAll } from '../stage-all.ts';
import type { WorktreeStatus } from '../status.ts';
import { printable, shellWord } from '../words.ts';

export interface CommitAllRequest {
  /** In the workspace. */
  readonly git: Git;
  /** Of the workspace. With them, less has to be asked of git. */
  readonly folders?: GitFolders | undefined;
  /** The commit from which to count what has changed. */
  readonly since?: string | undefined;
  readonly message: string;
  readonly author: { readonly name: string; readonly email: string };
  readonly at: Timestamp;
  readonly signal?: AbortSignal | undefined;
}

/** What is checked out afterwards, and whether a commit was made for it. */
export type Committed = { readonly commit: string; readonly branch: string | undefined } & (
  | { readonly kind: 'clean' }
  | {
      readonly kind: 'committed';
      /** The only parent of the commit; undefined if it has none, or may have several. */
      readonly parent: string | undefined;
      /** What has changed since the commit to count from; undefined if that is not known. */
      readonly changes: ChangeCounts | undefined;
    }
);

/**
 * Commits everything that was left uncommitted, whatever hooks would say. Throws WORKSPACE_FAILED, having changed
 * nothing, if conflicts are unresolved, or if another repository is inside, because a commit would not hold its files.
 */
export async function commitAll(request: CommitAllRequest): Promise<Committed> {
  const { git, folders, since, signal } = request;
  const isWanted = ({ unmerged, embedded, uncommitted, head }: WorktreeStatus): boolean => {
    if (unmerged.length > 0) throw unfinished(git, unmerged);
    if (embedded.length > 0) throw otherRepository(git, embedded);
    return uncommitted.length > 0 || head === undefined;
  };
  const { head, branch, isStaged } = await stageAll({ git, folders, isWanted, signal });
  if (head !== undefined && !isStaged) return { kind: 'clean', commit: head, branch };
  // A commit that ends a merge has the merged ones as parents too.
  const isMerge = folders === undefined || existsSync(join(folders.gitDir, 'MERGE_HEAD'));
  const result = await commitStaged(request);
  // What differed may have come to nothing, such as the ends of lines that git itself converts.
  if (result.code !== 0 && head !== undefined && (await isNothingStaged(git)))
    return { kind: 'clean', commit: head, branch };
  if (result.code !== 0) throw gitFailed(commitCommand(request.message), result);
  const commit = await headCommit(git, folders);
  const parent = isMerge ? undefined : head;
  const changes = since !== undefined && since === parent ? printedCounts(result.stdout) : undefined;
  return { kind: 'committed', commit, branch, parent, changes };
}

/** If this process is killed before it has told the message, there must be no commit: git would take nothing for empty. */
const commitCommand = (message: string): readonly string[] => [
  ...['commit', '--cleanup=whitespace', '--file=-'],
  ...(message.trim() === '' ? ['--allow-empty-message'] : []),
];

/** Everything in the index was read a moment ago, when it was staged: it need not be read again. */
async function commitStaged({ git, folders, ...request }: CommitAllRequest): Promise<GitResult> {
  if (folders === undefined) return commitIndex(git, request);
  const copy = join(folders.gitDir, 'reprise-commit-index');
  const clear = () => [copy, `${copy}.lock`].forEach(removeIfThere);
  // A process that was killed leaves its own.
  clear();
  try {
    copyFileSync(join(folders.gitDir, 'index'), copy);
    trustIndex(copy);
    return await commitIndex(git.with({ env: { GIT_INDEX_FILE: copy } }), request);
  } finally {
    clear();
  }
}

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
    { hint: `finish it, or give it up: git -C ${shellWord(git.cwd)} merge --abort` },
  );

/** Git would keep only the name of a commit in it, and nothing at all if it has none. */
const otherRepository = (git: Git, folders: readonly string[]): RepriseError =>
  new RepriseError(
    'WORKSPACE_FAILED',
    `there is another repository in ${git.cwd}: ${folders.map(printable).join(', ')}`,
    { hint: 'move it out of the workspace, or remove its .git folder to commit its files' },
  );

/** Throws WORKSPACE_FAILED if another repository is inside. */
export async function refuseEmbedded(git: Git): Promise<void> {
  const folders = (await untrackedFiles(git)).filter(name => name.endsWith('/')).map(asText);
  if (folders.length > 0) throw otherRepository(git, folders);
}

const asText = (bytes: string): string => Buffer.from(bytes, 'latin1').toString();
