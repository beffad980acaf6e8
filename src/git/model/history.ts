import { RepriseError } from '../../core/index.ts';
import {
  type ConflictStage,
  type LandedCommit,
  type ListedCommit,
  type ReplayedCommits,
  stampLines,
} from '../commits.ts';
import { idOfCommit, type Objects, type StoredCommit, type TreeEntry } from './objects.ts';
import { BlockedPathError, type FileDifference, isBinary, linesOf, type Trees } from './trees.ts';

export interface ThreeTrees {
  readonly base: string;
  readonly ours: string;
  readonly theirs: string;
}

/** File that the two sides changed in different ways. */
export interface FileClash {
  readonly path: string;
  readonly base: TreeEntry | undefined;
  readonly ours: TreeEntry | undefined;
  readonly theirs: TreeEntry | undefined;
}

type MergedTrees =
  | { readonly kind: 'clean'; readonly tree: string }
  /** `tree` is ours with all changes of theirs that do not clash. */
  | { readonly kind: 'conflict'; readonly tree: string; readonly clashes: readonly FileClash[] };

/**
 * Merges whole files. A file that only one side changed is taken from that side. A file that both sides changed is a
 * conflict, even if git would merge the changes because they are in different lines.
 */
export class TreeMerger {
  readonly #objects: Objects;
  readonly #trees: Trees;
  readonly #known = new Map<string, MergedTrees>();

  constructor(objects: Objects, trees: Trees) {
    this.#objects = objects;
    this.#trees = trees;
  }

  merge({ base, ours, theirs }: ThreeTrees): MergedTrees {
    if (base === theirs || ours === theirs) return { kind: 'clean', tree: ours };
    if (base === ours) return { kind: 'clean', tree: theirs };
    const key = `${base} ${ours} ${theirs}`;
    const known = this.#known.get(key);
    if (known) return known;
    const merged = this.#merge({ base, ours, theirs });
    this.#known.set(key, merged);
    return merged;
  }

  /** Returns the tree with conflict markers in its files. */
  marked(
    { tree, clashes }: Extract<MergedTrees, { kind: 'conflict' }>,
    labels: { readonly ours: string; readonly theirs: string },
  ): string {
    return this.#trees.withAll(
      tree,
      clashes.map(clash => [clash.path, this.#markedFile(clash, labels)] as const),
    );
  }

  /** Whether `marked` writes markers into the file. */
  isMarked({ ours, theirs }: FileClash): boolean {
    return ours !== undefined && theirs !== undefined && !this.#isBinary(ours) && !this.#isBinary(theirs);
  }

  #merge({ base, ours, theirs }: ThreeTrees): MergedTrees {
    const own = new Map(this.#trees.differences(base, ours).map(each => [each.path, each]));
    const foreign = this.#trees.differences(base, theirs);
    const renamed = renamedApart([...own.values()], foreign);
    const clashes: FileClash[] = [];
    const fitting: (readonly [string, TreeEntry | undefined])[] = [];
    for (const { path, before, after } of foreign) {
      const mine = own.get(path);
      const isSame = mine?.after?.id === after?.id && mine?.after?.mode === after?.mode;
      if (mine && isSame && !renamed.has(path)) continue;
      if (mine) clashes.push({ path, base: before, ours: mine.after, theirs: after });
      else fitting.push([path, after]);
    }
    const { tree, blocked } = this.#apply(ours, fitting);
    const all = [
      ...clashes,
      ...blocked.map(([path, entry]) => ({ path, base: undefined, ours: undefined, theirs: entry })),
    ];
    if (all.length === 0) return { kind: 'clean', tree };
    return { kind: 'conflict', tree, clashes: all.sort((a, b) => (a.path < b.path ? -1 : 1)) };
  }

  /** Applies the changes. Returns as `blocked` those whose path clashes with a file or a folder. */
  #apply(ours: string, changes: readonly (readonly [string, TreeEntry | undefined])[]) {
    const ordered = [...changes.filter(([, entry]) => !entry), ...changes.filter(([, entry]) => entry)];
    const blocked: (readonly [string, TreeEntry | undefined])[] = [];
    let tree = ours;
    for (const change of ordered) {
      try {
        tree = this.#trees.with(tree, ...change);
      } catch (error) {
        if (!(error instanceof BlockedPathError)) throw error;
        blocked.push(change);
      }
    }
    return { tree, blocked };
  }

  #markedFile(
    clash: FileClash,
    labels: { readonly ours: string; readonly theirs: string },
  ): TreeEntry | undefined {
    const { ours, theirs } = clash;
    if (!ours || !theirs || !this.isMarked(clash)) return ours ?? theirs;
    const [mine, other] = [ours, theirs].map(({ id }) => linesOf(this.#objects.text(id)));
    return { mode: ours.mode, id: this.#objects.addBlob(withMarkers(mine ?? [], other ?? [], labels)) };
  }

  #isBinary({ id }: TreeEntry): boolean {
    return isBinary(this.#objects.bytes(id));
  }
}

/** Returns the files that the two sides renamed to different paths, which git treats as a conflict. */
function renamedApart(
  own: readonly FileDifference[],
  foreign: readonly FileDifference[],
): ReadonlySet<string> {
  const targetOf = (differences: readonly FileDifference[], id: string | undefined) =>
    differences.find(({ before, after }) => before === undefined && after?.id === id)?.path;
  const goneHere = new Set(own.flatMap(({ path, after }) => (after ? [] : path)));
  return new Set(
    foreign.flatMap(({ path, before, after }) => {
      if (after || !goneHere.has(path)) return [];
      const [here, there] = [targetOf(own, before?.id), targetOf(foreign, before?.id)];
      return here !== undefined && there !== undefined && here !== there ? path : [];
    }),
  );
}

function withMarkers(
  ours: readonly string[],
  theirs: readonly string[],
  labels: { readonly ours: string; readonly theirs: string },
): string {
  const shorter = Math.min(ours.length, theirs.length);
  let head = 0;
  while (head < shorter && ours[head] === theirs[head]) head++;
  let tail = 0;
  while (tail < shorter - head && ours.at(-1 - tail) === theirs.at(-1 - tail)) tail++;
  const middle = (lines: readonly string[]) => ended(lines.slice(head, lines.length - tail).join(''));
  return [
    ...ours.slice(0, head),
    `<<<<<<< ${labels.ours}\n`,
    middle(ours),
    '=======\n',
    middle(theirs),
    `>>>>>>> ${labels.theirs}\n`,
    ...ours.slice(ours.length - tail),
  ].join('');
}

const ended = (text: string): string => (text === '' || text.endsWith('\n') ? text : `${text}\n`);

/** Returns the versions of the clashing files as index stages. */
const stagesOf = (clashes: readonly FileClash[]): readonly ConflictStage[] =>
  clashes.flatMap(({ path, base, ours, theirs }) =>
    ([base, ours, theirs] as const).flatMap((entry, side): ConflictStage[] =>
      entry ? [{ path, stage: ([1, 2, 3] as const)[side] ?? 1, mode: entry.mode, id: entry.id }] : [],
    ),
  );

/** Ancestry of commits, and their rebase onto other commits. */
export class History {
  readonly #objects: Objects;
  readonly #merging: TreeMerger;

  constructor(objects: Objects, merging: TreeMerger) {
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

  /** Returns the commits that are reachable from `tips` but not from `not`, parents first. */
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
    // Highest first, so that every commit that could exclude another one is visited before it.
    while (waiting.some(({ id }) => wanted.get(id))) {
      const highest = waiting.reduce((top, each) => (each.height > top.height ? each : top));
      waiting.splice(waiting.indexOf(highest), 1);
      const isWanted = wanted.get(highest.id) === true;
      if (isWanted) found.push(highest);
      for (const parent of highest.parents) add(parent, isWanted);
    }
    return found.reverse();
  }

  /** In-memory `replayCommits`. */
  replay({ onto, tip }: { readonly onto: string; readonly tip: string }): ReplayedCommits {
    const listed = this.commitsOf([tip], [onto]);
    if (listed.length === 0) return { kind: 'nothing' };
    refuseMerges(listed);
    if (listed.some(({ parents }) => parents.includes(onto)))
      return { kind: 'commit', commit: tip, commits: listed.map(toLanded) };
    return this.pickAll({ onto, series: listed.map(toListed) });
  }

  /** In-memory `pickAll`. */
  pickAll({
    onto,
    series,
  }: {
    readonly onto: string;
    readonly series: readonly ListedCommit[];
  }): ReplayedCommits {
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

  /** Cherry-picks a commit. Returns `onto` itself if it already has the changes. */
  #pick(source: StoredCommit, onto: string): string | Extract<ReplayedCommits, { kind: 'conflict' }> {
    const [parent] = source.parents;
    if (parent === onto) return source.id;
    const base = parent === undefined ? this.#objects.emptyTree : this.#objects.commit(parent).tree;
    const ours = this.#objects.commit(onto).tree;
    const merged = this.#merging.merge({ base, ours, theirs: source.tree });
    if (merged.kind === 'conflict') {
      const { id, subject, parents } = source;
      // The temporary commit that git merges, whose id follows the markers.
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
