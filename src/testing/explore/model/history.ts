import { RepriseError } from '../../../core/errors.ts';
import { stampLines } from '../../../git/commit-records.ts';
import type { LandedCommit, ListedCommit, Replayed } from '../../../git/commits.ts';
import { type Merging, stagesOf } from '../../../git/model/history.ts';
import { idOfCommit, type Objects, type StoredCommit } from '../../../git/model/objects.ts';

/** Commits, what is on top of what, and what they become on top of something else. */
export class History {
  readonly #objects: Objects;
  readonly #merging: Merging;

  constructor(objects: Objects, merging: Merging) {
    this.#objects = objects;
    this.#merging = merging;
  }

  isAncestor(one: string, of: string): boolean {
    if (one === of) return true;
    const low = this.#objects.commit(one).height;
    const seen = new Set<string>();
    const waiting = [of];
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      if (id === one) return true;
      const commit = this.#objects.commitIfThere(id);
      if (!commit || seen.has(id) || commit.height <= low) continue;
      seen.add(id);
      waiting.push(...commit.parents);
    }
    return false;
  }

  /** The commits of the tips that the others do not have, parents first. */
  commitsOf(tips: readonly string[], not: readonly string[]): readonly StoredCommit[] {
    const wanted = new Map<string, boolean>();
    const waiting: StoredCommit[] = [];
    const add = (id: string, isWanted: boolean) => {
      const commit = this.#objects.commitIfThere(id);
      if (!commit) return;
      const known = wanted.get(id);
      if (known === undefined) waiting.push(commit);
      wanted.set(id, isWanted && known !== false);
    };
    for (const id of not) add(id, false);
    for (const id of tips) add(id, true);
    const found: StoredCommit[] = [];
    // From the highest down, so that all that could exclude a commit has been seen before it.
    while (waiting.some(({ id }) => wanted.get(id))) {
      const highest = waiting.reduce((top, each) => (each.height > top.height ? each : top));
      waiting.splice(waiting.indexOf(highest), 1);
      const isWanted = wanted.get(highest.id) === true;
      if (isWanted) found.push(highest);
      for (const parent of highest.parents) add(parent, isWanted);
    }
    return found.reverse();
  }

  /** Like `replayCommits`. */
  replay({ onto, tip }: { readonly onto: string; readonly tip: string }): Replayed {
    const listed = this.commitsOf([tip], [onto]);
    if (listed.length === 0) return { kind: 'nothing' };
    refuseMerges(listed);
    if (listed.some(({ parents }) => parents.includes(onto)))
      return { kind: 'commit', commit: tip, commits: listed.map(toLanded) };
    return this.pickAll({ onto, series: listed.map(toListed) });
  }

  /** The same for commits that are listed already. */
  pickAll({ onto, series }: { readonly onto: string; readonly series: readonly ListedCommit[] }): Replayed {
    const commits: LandedCommit[] = [];
    let current = onto;
    for (const [index, { commit: id, subject }] of series.entries()) {
      const picked = this.#pick(this.#objects.commit(id), current);
      if (typeof picked !== 'string') return { ...picked, rest: series.slice(index + 1) };
      if (picked === current) continue;
      current = picked;
      commits.push({ commit: picked, subject });
    }
    return commits.length === 0 ? { kind: 'nothing' } : { kind: 'commit', commit: current, commits };
  }

  /** What the commit becomes; `onto` itself if that has all of it. */
  #pick(source: StoredCommit, onto: string): string | Extract<Replayed, { kind: 'conflict' }> {
    const [parent] = source.parents;
    if (parent === onto) return source.id;
    const base = parent === undefined ? this.#objects.emptyTree : this.#objects.commit(parent).tree;
    const ours = this.#objects.commit(onto).tree;
    const merged = this.#merging.merge({ base, ours, theirs: source.tree });
    if (merged.kind === 'conflict') {
      const { id, subject, parents } = source;
      // The commit that git is given as the other side, whose name stands behind the markers.
      const side = idOfCommit({ tree: ours, parents, lines: stampLines, message: '' });
      const sides = { ours: side, theirs: id };
      return {
        kind: 'conflict',
        files: merged.clashes.map(({ path }) => path),
        tree: this.#merging.marked(merged, sides),
        stages: stagesOf(merged.clashes),
        sides,
        at: onto,
        commit: id,
        subject,
        rest: [],
        isWhole: false,
      };
    }
    const wasEmpty = parent !== undefined && base === source.tree;
    if (merged.tree === ours && !wasEmpty) return onto;
    return this.#objects.addCommit({ ...source, tree: merged.tree, parents: [onto] });
  }
}

const toLanded = ({ id, subject }: StoredCommit): LandedCommit => ({ commit: id, subject });

const toListed = ({ id, subject, parents }: StoredCommit): ListedCommit => ({
  commit: id,
  subject,
  parents,
});

function refuseMerges(listed: readonly StoredCommit[]): void {
  const merge = listed.find(({ parents }) => parents.length > 1);
  if (!merge) return;
  throw new RepriseError(
    'GIT_FAILED',
    `"${merge.subject}" is a merge, which the model of a repository does not replay`,
    {
      hint: 'explore this case on real git: --on git',
    },
  );
}
