import type { Git } from '../git.ts';
import type { Repository } from '../repository.ts';
import { type Carried, threeWay } from './apply.ts';
import { snapshot } from './capture.ts';
import { install } from './install.ts';
import { placeOf } from './place.ts';
import { withShadow } from './shadow.ts';
import { type Carrying, carryRest, isSameBase, type WorktreeState } from './state.ts';

export interface ApplyDeltaRequest {
  readonly repository: Repository;
  /** The top of a worktree. It need not stand as the other did before the session. */
  readonly folder: string;
  readonly before: WorktreeState;
  readonly after: WorktreeState;
  /** From `packDelta`. The repository must have the base that it was made for. */
  readonly pack: Uint8Array;
}

/** What became of a session in another worktree. */
export type Applied =
  /** It stood as the other did before the session, and stands as that did after it. */
  | { readonly kind: 'exact'; readonly state: WorktreeState }
  /** It stood in another way: what the session did was merged into that. */
  | { readonly kind: 'counterfactual'; readonly state: WorktreeState }
  /** That was not possible. The worktree is as it was. */
  | { readonly kind: 'inconclusive'; readonly why: string };

/** Does to a worktree what a session did to the one that it worked in. Throws CAPTURE_REFUSED like `worktreeState`. */
export function applyDelta({ repository, folder, before, after, pack }: ApplyDeltaRequest): Promise<Applied> {
  const place = placeOf(repository, folder);
  return withShadow(place, {}, async shadow => {
    const [current] = await Promise.all([snapshot(shadow), unpack(place.git, pack)]);
    const states = { before, after, current };
    const isSame = isSameBase(before, current);
    const carried = isSame ? asItWas(states) : await threeWay(shadow.bare, states);
    if (carried.kind === 'inconclusive') return carried;
    const blocked = await install(shadow, { current, wanted: carried.state });
    if (blocked !== undefined) return { kind: 'inconclusive', why: blocked };
    return { kind: isSame ? 'exact' : 'counterfactual', state: carried.state };
  });
}

const asItWas = (states: Carrying): Carried => ({
  kind: 'carried',
  state: { ...states.after, ...carryRest(states, commit => commit) },
});

/** Below this, single files are quicker to write than a pack with its index; `git fetch` draws the line here too. */
const looseLimit = 100;

/** Puts the objects of a pack into the repository. */
async function unpack(git: Git, pack: Uint8Array): Promise<void> {
  const bytes = Buffer.from(pack.buffer, pack.byteOffset, pack.byteLength);
  const count = bytes.readUInt32BE(8);
  if (count === 0) return;
  const args = count < looseLimit ? ['unpack-objects', '-q'] : ['index-pack', '--stdin', '--fix-thin'];
  // What is replayed can be replayed again: waiting for the disk would take longer than all the rest.
  await git.ok(['-c', 'core.fsync=none', ...args], { input: bytes.toString('latin1'), encoding: 'bytes' });
}
