import type { Stage } from '../commits.ts';
import type { Objects, TreeEntry } from './objects.ts';
import { type FileDifference, InTheWay, isBinary, linesOf, type Trees } from './trees.ts';

export interface ThreeTrees {
  readonly base: string;
  readonly ours: string;
  readonly theirs: string;
}

/** A file that both sides have changed, each in its own way. */
export interface Clash {
  readonly path: string;
  readonly base: TreeEntry | undefined;
  readonly ours: TreeEntry | undefined;
  readonly theirs: TreeEntry | undefined;
}

export type MergedTrees =
  | { readonly kind: 'clean'; readonly tree: string }
  /** `tree`: ours, with all of theirs that fits. */
  | { readonly kind: 'conflict'; readonly tree: string; readonly clashes: readonly Clash[] };

/**
 * Merges whole files: what only one side has changed is taken from it. Two changes of one file are a conflict, also where
 * git would find that they are in different lines.
 */
export class Merging {
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

  /** With the markers of the conflicts in its files. */
  marked(
    { tree, clashes }: Extract<MergedTrees, { kind: 'conflict' }>,
    labels: { readonly ours: string; readonly theirs: string },
  ): string {
    return this.#trees.withAll(
      tree,
      clashes.map(clash => [clash.path, this.#markedFile(clash, labels)] as const),
    );
  }

  /** Whether markers stand in the file then. */
  isMarked({ ours, theirs }: Clash): boolean {
    return ours !== undefined && theirs !== undefined && !this.#isBinary(ours) && !this.#isBinary(theirs);
  }

  #merge({ base, ours, theirs }: ThreeTrees): MergedTrees {
    const own = new Map(this.#trees.differences(base, ours).map(each => [each.path, each]));
    const foreign = this.#trees.differences(base, theirs);
    const renamed = renamedApart([...own.values()], foreign);
    const clashes: Clash[] = [];
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

  /** What cannot be put where a folder has become a file, or a file a folder, is left out and told. */
  #apply(ours: string, changes: readonly (readonly [string, TreeEntry | undefined])[]) {
    const ordered = [...changes.filter(([, entry]) => !entry), ...changes.filter(([, entry]) => entry)];
    const blocked: (readonly [string, TreeEntry | undefined])[] = [];
    let tree = ours;
    for (const change of ordered) {
      try {
        tree = this.#trees.with(tree, ...change);
      } catch (error) {
        if (!(error instanceof InTheWay)) throw error;
        blocked.push(change);
      }
    }
    return { tree, blocked };
  }

  #markedFile(
    clash: Clash,
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

/** Of the same file, moved to different places by the two sides: git calls that a conflict. */
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

/** What each side has of the files that clash, as git lists it. */
export const stagesOf = (clashes: readonly Clash[]): readonly Stage[] =>
  clashes.flatMap(({ path, base, ours, theirs }) =>
    ([base, ours, theirs] as const).flatMap((entry, side): Stage[] =>
      entry ? [{ path, stage: ([1, 2, 3] as const)[side] ?? 1, mode: entry.mode, id: entry.id }] : [],
    ),
  );
