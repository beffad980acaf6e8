import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readIfThere } from '../files.ts';
import type { Git } from '../git.ts';
import type { Repository } from '../repository.ts';
import { isSameStashes, type Stash } from './state.ts';

/** Newest first. Needs no process where refs are files. */
export async function stashesOf({ commonDir, git }: Repository): Promise<readonly Stash[]> {
  if (existsSync(join(commonDir, 'reftable'))) return askForStashes(git);
  const log = readIfThere(join(commonDir, 'logs', 'refs', 'stash')) ?? '';
  return log.split('\n').flatMap(readStash).reverse();
}

function readStash(line: string): readonly Stash[] {
  const [, commit, message = ''] = /^\S+ (\S+) [^\t]*(?:\t(.*))?$/.exec(line) ?? [];
  return commit === undefined ? [] : [{ commit, message }];
}

async function askForStashes(git: Git): Promise<readonly Stash[]> {
  const { stdout } = await git.run(['log', '--walk-reflogs', '-z', '--format=%H %gs', 'refs/stash', '--']);
  return stdout
    .split('\0')
    .filter(line => line !== '')
    .map(line => ({ commit: line.slice(0, line.indexOf(' ')), message: line.slice(line.indexOf(' ') + 1) }));
}

/** Makes the list of stashes another one. What both have at the end stays untouched. */
export async function setStashes(
  git: Git,
  { current, wanted }: { current: readonly Stash[]; wanted: readonly Stash[] },
): Promise<void> {
  const added = wanted.length - current.length;
  const isOnTop = added >= 0 && isSameStashes(wanted.slice(added), current);
  if (!isOnTop) await git.ok(['stash', 'clear']);
  const missing = isOnTop ? wanted.slice(0, added) : wanted;
  for (const { commit, message } of [...missing].reverse())
    await git.ok(['stash', 'store', '--quiet', `--message=${message}`, commit]);
}
