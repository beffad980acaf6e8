import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isBranchName } from './names.ts';
import { type Repository, resolveCommit } from './repository.ts';
import { readIfThere } from './small-files.ts';

/**
 * Where a branch stands; `undefined` if there is none. Cheap enough to be asked again and again: where git keeps refs in
 * files, no process is started for a branch that is there.
 */
export async function tipOfBranch(repository: Repository, branch: string): Promise<string | undefined> {
  if (!isBranchName(branch)) return undefined;
  return tipInFiles(repository, branch) ?? resolveCommit(repository.git, `refs/heads/${branch}`);
}

/** `undefined` may also mean that files do not tell: refs can be in tables, or be names of others. */
function tipInFiles({ commonDir }: Repository, branch: string): string | undefined {
  if (existsSync(join(commonDir, 'reftable'))) return undefined;
  // In this order: git removes the file of a ref only after it has packed the ref.
  const loose = readIfThere(join(commonDir, 'refs/heads', branch))?.trimEnd();
  if (loose !== undefined) return isId(loose) ? loose : undefined;
  return packedTip(readIfThere(join(commonDir, 'packed-refs')) ?? '', branch);
}

function packedTip(text: string, branch: string): string | undefined {
  const end = text.indexOf(` refs/heads/${branch}\n`);
  const id = text.slice(text.lastIndexOf('\n', end) + 1, Math.max(end, 0));
  return isId(id) ? id : undefined;
}

const isId = (text: string): boolean => /^[0-9a-f]{40}([0-9a-f]{24})?$/.test(text);
