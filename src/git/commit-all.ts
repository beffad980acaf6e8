import { RepriseError } from '../core/errors.ts';
import { type Timestamp, toEpochMs } from '../core/time.ts';
import { type Git, gitFailed } from './git.ts';
import { untrackedFiles } from './side-index.ts';
import { worktreeStatus } from './status.ts';
import { printable, shellWord } from './words.ts';

export interface CommitAllRequest {
  /** In the workspace. */
  readonly git: Git;
  readonly message: string;
  readonly author: { readonly name: string; readonly email: string };
  readonly at: Timestamp;
  readonly signal?: AbortSignal | undefined;
}

/** What is checked out afterwards, and whether a commit was made for it. */
export interface Committed {
  readonly kind: 'committed' | 'clean';
  readonly commit: string;
  readonly branch: string | undefined;
}

/**
 * Commits everything that was left uncommitted, whatever hooks would say. Throws WORKSPACE_FAILED, having changed
 * nothing, if conflicts are unresolved, or if another repository is inside, because a commit would not hold its files.
 */
export async function commitAll({ git, message, author, at, signal }: CommitAllRequest): Promise<Committed> {
  const { uncommitted, unmerged, embedded, head, branch } = await worktreeStatus(git);
  if (unmerged.length > 0) throw unfinished(git, unmerged);
  if (embedded.length > 0) throw otherRepository(git, embedded);
  if (uncommitted.length === 0 && head !== undefined) return { kind: 'clean', commit: head, branch };
  await git.ok(['add', '--all'], { signal });
  const date = `@${Math.floor(toEpochMs(at) / 1000)} +0000`;
  const identity = {
    GIT_AUTHOR_NAME: author.name,
    GIT_AUTHOR_EMAIL: author.email,
    GIT_AUTHOR_DATE: date,
    GIT_COMMITTER_NAME: author.name,
    GIT_COMMITTER_EMAIL: author.email,
    GIT_COMMITTER_DATE: date,
  };
  const args = ['commit', '--quiet', '--allow-empty-message', '--cleanup=whitespace', '--file=-'];
  const options = { input: message, hooks: 'skip', signal } as const;
  const result = await git.with({ env: identity }).run(args, options);
  // What differed may have come to nothing, such as the ends of lines that git itself converts.
  if (result.code !== 0 && head !== undefined && (await isNothingStaged(git)))
    return { kind: 'clean', commit: head, branch };
  if (result.code !== 0) throw gitFailed(args, result);
  return { kind: 'committed', commit: await git.line(['rev-parse', 'HEAD']), branch };
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
