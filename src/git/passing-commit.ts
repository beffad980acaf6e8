import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { type CommitText, commitBytes } from './commit-records.ts';
import type { Git } from './git.ts';
import { quotedPath } from './words.ts';

/**
 * Runs the body with a git that knows one more commit, without a process to write it. It lies in a folder of its own,
 * so that nothing of it is left in the repository.
 */
export async function withPassingCommit<T>(
  git: Git,
  commit: CommitText,
  body: (inside: Git, id: string) => Promise<T>,
): Promise<T> {
  const content = Buffer.from(commitBytes(commit), 'latin1');
  const object = Buffer.concat([Buffer.from(`commit ${content.length}\0`), content]);
  const id = createHash(commit.tree.length === 64 ? 'sha256' : 'sha1')
    .update(object)
    .digest('hex');
  const folder = mkdtempSync(join(tmpdir(), 'reprise-commit-'));
  try {
    mkdirSync(join(folder, id.slice(0, 2)));
    writeFileSync(join(folder, id.slice(0, 2), id.slice(2)), deflateSync(object));
    return await body(git.with({ env: { GIT_ALTERNATE_OBJECT_DIRECTORIES: quotedPath(folder) } }), id);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
