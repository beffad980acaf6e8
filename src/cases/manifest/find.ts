import { type Dirent, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { fitsPath, nearest, RepriseError } from '../../core/index.ts';

/** A case file on disk that has not been read yet. */
export interface FoundCase {
  readonly name: string;
  /** Folders between `cases/` and the case folder; empty if there are none. */
  readonly group: string;
  readonly folder: string;
  readonly file: string;
  /** Path of the case file relative to the working directory, separated by `/`. */
  readonly displayFile: string;
}

/** A folder with recordings but without a case file. */
export interface Orphan {
  readonly folder: string;
  readonly displayFolder: string;
  /** Names of the recordings in the folder, sorted. */
  readonly files: readonly string[];
  /** Name of a case file that may have been meant for this folder. */
  readonly misnamed: string | undefined;
  /** Path where the case file should be. */
  readonly expected: string;
}

export interface FoundCases {
  /** Cases without duplicates, sorted by group and name. */
  readonly cases: readonly FoundCase[];
  /** Orphans in the searched folders. A search by name reports only those in folders it was given. */
  readonly orphans: readonly Orphan[];
}

interface CaseSearch {
  /** Names, groups, `group/name`, patterns such as `orchestration/*`, or paths. Empty means all cases. */
  readonly names?: readonly string[];
  readonly cwd: string;
  /** Folder of the cases, relative to `cwd`. Defaults to `cases`. */
  readonly folder?: string;
}

/** Finds cases, which are files `cases/**\/<name>/<name>.toml`. Throws CASE_NOT_FOUND for a name that matches none. */
export function findCases({ names = [], cwd, folder = 'cases' }: CaseSearch): FoundCases {
  const root = resolve(cwd, folder);
  const all = searchFolder({ root, from: root, cwd });
  if (names.length === 0) return all;
  const found = names.map(name => select(name, { all, root, cwd }));
  return {
    cases: sorted(unique(found.flatMap(({ cases }) => cases))),
    orphans: unique(found.flatMap(({ orphans }) => orphans)),
  };
}

interface KnownCases {
  readonly all: FoundCases;
  readonly root: string;
  readonly cwd: string;
}

function select(name: string, { all, root, cwd }: KnownCases): FoundCases {
  const wanted = name.replace(/^\.\//, '').replace(/\/+$/, '');
  const byName = all.cases.filter(found => found.name === wanted || idOf(found) === wanted);
  if (byName.length > 0) return { cases: byName, orphans: [] };
  const inGroup = all.cases.filter(({ group }) => group === wanted || group.startsWith(`${wanted}/`));
  if (inGroup.length > 0) return { cases: inGroup, orphans: [] };
  const byPath = selectPath(name, { all, root, cwd });
  if (byPath) return byPath;
  if (wanted.includes('*')) {
    const matching = all.cases.filter(
      found => fitsPath(wanted, idOf(found)) || fitsPath(wanted, dirname(found.displayFile)),
    );
    if (matching.length > 0) return { cases: matching, orphans: [] };
  }
  throw unknownCase(name, all);
}

function selectPath(name: string, { root, cwd }: KnownCases): FoundCases | undefined {
  const path = resolve(cwd, name);
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFile() && path.endsWith('.toml'))
    return { cases: [caseAt({ file: path, root, cwd })], orphans: [] };
  if (!stats?.isDirectory()) return undefined;
  const found = searchFolder({ root, from: path, cwd });
  return found.cases.length + found.orphans.length > 0 ? found : undefined;
}

function unknownCase(name: string, { cases, orphans }: FoundCases): RepriseError {
  const orphan = orphans.find(({ folder }) => basename(folder) === basename(name));
  const guess = nearest(
    name,
    cases.flatMap(found => [found.name, idOf(found)]),
  );
  const hint = orphan
    ? explainOrphan(orphan)
    : guess
      ? `did you mean \`${guess}\`?`
      : cases.length > 0
        ? `cases: ${listed(cases.map(idOf))}`
        : 'capture one from a run: reprise capture <run> <name>; or write cases/<group>/<name>/<name>.toml';
  return new RepriseError('CASE_NOT_FOUND', `no test case named \`${name}\``, { hint });
}

const maxListed = 10;

const listed = (ids: readonly string[]): string =>
  ids.length > maxListed
    ? `${ids.slice(0, maxListed).join(', ')} and ${ids.length - maxListed} more`
    : ids.join(', ');

/** Returns a message that says what is wrong with the folder and how to fix it. */
export const explainOrphan = ({ displayFolder, files, misnamed, expected }: Orphan): string =>
  misnamed
    ? `${displayFolder}/${misnamed} is not at the path of a case file; move it to ${expected}`
    : `${displayFolder} has recordings (${listed(files)}) but no case file; write ${expected}, or delete the recordings`;

/** Returns `group/name`, or the name alone for a case without a group. */
export const idOf = ({ group, name }: Pick<FoundCase, 'group' | 'name'>): string =>
  group === '' ? name : `${group}/${name}`;

interface SearchRoot {
  /** Folder that group names are relative to. */
  readonly root: string;
  readonly cwd: string;
}

function searchFolder({ from, ...place }: SearchRoot & { readonly from: string }): FoundCases {
  const cases: FoundCase[] = [];
  const orphans: Orphan[] = [];
  const visit = (folder: string): void => {
    const entries = entriesOf(folder);
    const names = entries.filter(entry => !entry.isDirectory()).map(entry => entry.name);
    const own = `${basename(folder)}.toml`;
    // A `cases/cases.toml` is not a case: it would hide all the others.
    if (folder !== place.root && names.includes(own)) {
      cases.push(caseAt({ ...place, file: join(folder, own) }));
      return;
    }
    const recordings = names.filter(name => /\.(vcr|score|snap)$/.test(name)).sort();
    const tomls = names.filter(name => name.endsWith('.toml')).sort();
    const [stray] = [...tomls, ...recordings];
    if (stray !== undefined) {
      const displayFolder = display(folder, place.cwd);
      const stem = stray.replace(/(__.*)?\.[a-z]+$/, '');
      const expected =
        folder === place.root ? `${displayFolder}/${stem}/${stem}.toml` : `${displayFolder}/${own}`;
      orphans.push({ folder, displayFolder, files: recordings, misnamed: tomls[0], expected });
    }
    for (const entry of entries)
      if (entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules')
        visit(join(folder, entry.name));
  };
  visit(from);
  return { cases: sorted(cases), orphans: orphans.toSorted((a, b) => order(a.folder, b.folder)) };
}

function caseAt({ file, root, cwd }: SearchRoot & { readonly file: string }): FoundCase {
  const folder = dirname(file);
  const group = relative(root, dirname(folder)).split(sep).join('/');
  return {
    name: basename(file, '.toml'),
    group: group === '..' || group.startsWith('../') ? '' : group,
    folder,
    file,
    displayFile: display(file, cwd),
  };
}

/** Returns an empty list if the folder does not exist. */
function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR'))
      return [];
    throw error;
  }
}

const display = (path: string, cwd: string): string => {
  const short = relative(cwd, path).split(sep).join('/');
  return short.startsWith('../') ? path : short;
};

/** Compares without the locale, so that the order is the same on every machine. */
const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const sorted = (cases: readonly FoundCase[]): readonly FoundCase[] =>
  cases.toSorted((a, b) => order(a.group, b.group) || order(a.name, b.name));

const unique = <T extends { readonly folder: string }>(all: readonly T[]): readonly T[] => [
  ...new Map(all.map(item => [item.folder, item])).values(),
];
