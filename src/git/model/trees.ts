import { diffLines } from '../../core/index.ts';
import type { ChangeCounts } from '../diff.ts';
import { folderMode, type Objects, type TreeEntry } from './objects.ts';

/** File that differs between two trees. */
export interface FileDifference {
  readonly path: string;
  readonly before: TreeEntry | undefined;
  readonly after: TreeEntry | undefined;
}

/** Thrown if the path of a file leads through another file, or is a folder. */
export class BlockedPathError extends Error {}

/** Reads, changes and compares trees. Trees are immutable: a change returns the id of a new tree. */
export class Trees {
  readonly #objects: Objects;
  readonly #differences = new Map<string, readonly FileDifference[]>();
  readonly #counts = new Map<string, ChangeCounts>();

  constructor(objects: Objects) {
    this.#objects = objects;
  }

  fileAt(tree: string, path: string): TreeEntry | undefined {
    const found = this.#entryAt(tree, path);
    return found?.mode === folderMode ? undefined : found;
  }

  /** Returns the files directly in a folder, in git's order. Empty if the folder does not exist. */
  filesIn(tree: string, folder: string): readonly { readonly path: string; readonly entry: TreeEntry }[] {
    const top = folder.replace(/^(\.?\/)+|\/+$/g, '');
    const isTop = top === '' || top === '.';
    const found = isTop ? { mode: folderMode, id: tree } : this.#entryAt(tree, top);
    if (found?.mode !== folderMode) return [];
    return [...this.#objects.tree(found.id)]
      .filter(([, { mode }]) => mode !== folderMode)
      .map(([name, entry]) => ({ path: isTop ? name : `${top}/${name}`, entry }));
  }

  /** Returns the tree with the file added, replaced or removed. Throws BlockedPathError. */
  with(tree: string, path: string, entry: TreeEntry | undefined): string {
    const slash = path.indexOf('/');
    const name = slash === -1 ? path : path.slice(0, slash);
    const entries = this.#objects.tree(tree);
    const old = entries.get(name);
    const changed = slash === -1 ? entry : this.#withBelow(old, path.slice(slash + 1), entry);
    if (old?.mode === changed?.mode && old?.id === changed?.id) return tree;
    if (slash === -1 && old?.mode === folderMode) throw new BlockedPathError(path);
    const others = new Map(entries);
    if (changed) others.set(name, changed);
    else others.delete(name);
    return this.#objects.addTree(others);
  }

  /** Applies all changes, removals first because a folder may become a file. Throws BlockedPathError. */
  withAll(tree: string, changes: Iterable<readonly [path: string, entry: TreeEntry | undefined]>): string {
    const list = [...changes];
    const without = list.filter(([, entry]) => !entry);
    const added = list.filter(([, entry]) => entry);
    return [...without, ...added].reduce((at, [path, entry]) => this.with(at, path, entry), tree);
  }

  /** Returns the differences, sorted by path. */
  differences(before: string, after: string): readonly FileDifference[] {
    if (before === after) return [];
    const key = `${before} ${after}`;
    const known = this.#differences.get(key);
    if (known) return known;
    const found = [...this.#compare(before, after, '')].sort((a, b) => (a.path < b.path ? -1 : 1));
    this.#differences.set(key, found);
    return found;
  }

  changedPaths(before: string, after: string): readonly string[] {
    return this.differences(before, after).map(({ path }) => path);
  }

  /** Counts as `git diff --shortstat` does, except that only renames without changes count as renames. */
  counts(before: string, after: string): ChangeCounts {
    const key = `${before} ${after}`;
    const known = this.#counts.get(key);
    if (known) return known;
    const differences = withoutRenames(this.differences(before, after));
    const lines = differences.each.map(each => this.#linesOf(each));
    const counts = {
      files: differences.each.length + differences.renames,
      insertions: lines.reduce((sum, { insertions }) => sum + insertions, 0),
      deletions: lines.reduce((sum, { deletions }) => sum + deletions, 0),
    };
    this.#counts.set(key, counts);
    return counts;
  }

  #entryAt(tree: string, path: string): TreeEntry | undefined {
    let found: TreeEntry | undefined = { mode: folderMode, id: tree };
    for (const name of path.split('/')) {
      if (found?.mode !== folderMode) return undefined;
      found = this.#objects.tree(found.id).get(name);
    }
    return found;
  }

  /** Returns `undefined` for a folder without files, which git does not store. */
  #withBelow(old: TreeEntry | undefined, rest: string, entry: TreeEntry | undefined): TreeEntry | undefined {
    if (old !== undefined && old.mode !== folderMode) {
      if (entry) throw new BlockedPathError(rest);
      return old;
    }
    const id = this.with(old?.id ?? this.#objects.emptyTree, rest, entry);
    return id === this.#objects.emptyTree ? undefined : { mode: folderMode, id };
  }

  *#compare(before: string | undefined, after: string | undefined, at: string): Iterable<FileDifference> {
    const one = before === undefined ? undefined : this.#objects.tree(before);
    const other = after === undefined ? undefined : this.#objects.tree(after);
    for (const name of new Set([...(one?.keys() ?? []), ...(other?.keys() ?? [])])) {
      const was = one?.get(name);
      const is = other?.get(name);
      if (was?.id === is?.id && was?.mode === is?.mode) continue;
      const path = `${at}${name}`;
      const [wasFolder, isFolder] = [was, is].map(each => (each?.mode === folderMode ? each.id : undefined));
      const [wasFile, isFile] = [was, is].map(each => (each?.mode === folderMode ? undefined : each));
      if (wasFile || isFile) yield { path, before: wasFile, after: isFile };
      if (wasFolder !== undefined || isFolder !== undefined)
        yield* this.#compare(wasFolder, isFolder, `${path}/`);
    }
  }

  #linesOf({ before, after }: FileDifference): Omit<ChangeCounts, 'files'> {
    const [was, is] = [before, after].map(entry => this.#linesIn(entry));
    if (!was || !is) return { insertions: 0, deletions: 0 };
    const lines = diffLines(was, is);
    return {
      insertions: lines.filter(({ kind }) => kind === 'added').length,
      deletions: lines.filter(({ kind }) => kind === 'removed').length,
    };
  }

  /** Returns `undefined` for a binary file. */
  #linesIn(entry: TreeEntry | undefined): readonly string[] | undefined {
    if (!entry) return [];
    return isBinary(this.#objects.bytes(entry.id)) ? undefined : linesOf(this.#objects.text(entry.id));
  }
}

/** Splits text into lines that keep their line endings. */
export const linesOf = (text: string): readonly string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

/** Detects binary files as git does. */
export const isBinary = (bytes: Buffer): boolean => bytes.subarray(0, 8000).includes(0);

function withoutRenames(differences: readonly FileDifference[]): {
  readonly each: readonly FileDifference[];
  readonly renames: number;
} {
  const added = differences.filter(({ before }) => before === undefined);
  const taken = new Set<FileDifference>();
  for (const gone of differences) {
    if (gone.after !== undefined) continue;
    const target = added.find(({ after }) => after?.id === gone.before?.id);
    if (!target || taken.has(target)) continue;
    taken.add(gone).add(target);
  }
  return { each: differences.filter(each => !taken.has(each)), renames: taken.size / 2 };
}
