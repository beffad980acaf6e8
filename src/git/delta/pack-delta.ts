import { join } from 'node:path';
import type { Repository } from '../repository.ts';
import { objectEnvironment } from './shadow.ts';
import { newStashes, type WorktreeState } from './state.ts';

export interface PackDeltaRequest {
  readonly repository: Repository;
  /** Where the objects of the states are that the repository does not have. */
  readonly objectsDir: string;
  /** The commit that whoever applies the delta has: that of the case, not that of the session. */
  readonly base: string;
  readonly before: WorktreeState;
  readonly after: WorktreeState;
}

/** Nothing of how objects happen to be stored, of the number of cores or of settings gets into the bytes. */
export const packArguments = [
  ...['pack-objects', '--quiet', '--revs', '--delta-base-offset', '--no-reuse-delta', '--no-reuse-object'],
  ...['--no-use-bitmap-index', '--threads=1', '--window=10', '--depth=50', '--compression=6'],
];

/**
 * One pack of all objects that the two states name and the base does not have. It leans on objects of the base (a thin
 * pack). The same states give the same bytes.
 */
export async function packDelta(request: PackDeltaRequest): Promise<Uint8Array> {
  const { repository, objectsDir, base, before, after } = request;
  const stashed = newStashes(before, after).map(({ commit }) => commit);
  const wanted = [...new Set([...namesOf(before), ...namesOf(after), ...stashed])];
  const input = [...wanted, `^${base}`, `^${base}^{tree}`, ''].join('\n');
  const env = objectEnvironment(join(repository.commonDir, 'objects'), objectsDir);
  // `--shallow`: git looks for bases of deltas in the base even if the session made no commit.
  const args = [...packArguments, '--stdout', '--thin', '--shallow'];
  const pack = await repository.git.with({ env }).ok(args, { input, encoding: 'bytes' });
  return Buffer.from(pack, 'latin1');
}

const namesOf = ({ head, tree, index, refs }: WorktreeState): readonly string[] =>
  [head.commit, tree, index.tree, ...Object.values(refs)].filter(name => name !== null);
