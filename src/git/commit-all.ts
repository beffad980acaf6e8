import { RepriseError } from '../core/errors.ts';
import { type Timestamp, toEpochMs } from '../core/time.ts';
import type { Git } from './git.ts';
import { untrackedFiles } from './side-index.ts';
import { printable, shellWord } from './words.ts';

export interface CommitAllRequest {
  /** In the workspace. */
  readonly git: Git;
  readonly message: string;
  readonly author: { readonly name: string; readonly email: string };
  readonly at: Timestamp;
  readonly signal?: AbortSignal | undefined;
}

export type Committed = { readonly kind: 'committed'; readonly commit: string } | { readonly kind: 'clean' };

/**
 * Commits everything that was left uncommitted, whatever hooks would say. Throws WORKSPACE_FAILED, having changed
 * nothing, if conflicts are unresolved, or if another repository is inside, because a commit would not hold its files.
 */
export async function commitAll({ git, message, author, at, signal }: CommitAllRequest): Promise<Committed> {
  await refuseUnfinished(git);
  await refuseEmbedded(git);
  await git.ok(['add', '--all'], { signal });
  const { code } = await git.run(['diff', '--cached', '--quiet', '--no-ext-diff']);
  if (code === 0) return { kind: 'clean' };
  const date = `@${Math.floor(toEpochMs(at) / 1000)} +0000`;
  const identity = {
    GIT_AUTHOR_NAME: author.name,
    GIT_AUTHOR_EMAIL: author.email,
    GIT_AUTHOR_DATE: date,
    GIT_COMMITTER_NAME: author.name,
    GIT_COMMITTER_EMAIL: author.email,
    GIT_COMMITTER_DATE: date,
  };
  await git
    .with({ env: identity })
    .ok(['commit', '--quiet', '--allow-empty-message', '--cleanup=whitespace', '--file=-'], {
      input: message,
      hooks: 'skip',
      signal,
    });
  return { kind: 'committed', commit: await git.line(['rev-parse', 'HEAD']) };
}

async function refuseUnfinished(git: Git): Promise<void> {
  const unmerged = await git.ok(['diff', '--name-only', '-z', '--diff-filter=U']);
  const files = unmerged.split('\0').filter(name => name !== '');
  if (files.length === 0) return;
  throw new RepriseError(
    'WORKSPACE_FAILED',
    `a merge in ${git.cwd} is unfinished: ${files.map(printable).join(', ')}`,
    {
      hint: `finish it, or give it up: git -C ${shellWord(git.cwd)} merge --abort`,
    },
  );
}

/** Git would keep only the name of a commit in it, and nothing at all if it has none. */
export async function refuseEmbedded(git: Git): Promise<void> {
  const folders = (await untrackedFiles(git)).filter(name => name.endsWith('/')).map(asText);
  if (folders.length === 0) return;
  throw new RepriseError(
    'WORKSPACE_FAILED',
    `there is another repository in ${git.cwd}: ${folders.map(printable).join(', ')}`,
    {
      hint: 'move it out of the workspace, or remove its .git folder to commit its files',
    },
  );
}

const asText = (bytes: string): string => Buffer.from(bytes, 'latin1').toString();
