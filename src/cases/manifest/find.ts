import { type Dirent, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { fitsPath } from '../../agents/permissions/rules.ts';
import { RepriseError } from '../../core/errors.ts';
import { nearest } from '../../core/suggest.ts';

/** A case that was found, not yet read. */
export interface FoundCase {
  readonly name: string;
  /** The folders between `cases/` and the folder of the case; empty without any. */
  readonly group: string;
  readonly folder: string;
  readonly file: string;
  /** Relative to where the search began, with `/`. */
  readonly displayFile: string;
}

/** A folder with recordings that no case file claims. */
export interface Orphan {
  readonly folder: string;
  readonly displayFolder: string;
  /** Recordings in it, sorted. */
  readonly files: readonly string[];
  /** A case file that looks as if it should be the folder's. */
  readonly misnamed: string | undefined;
  /** Where its case file should be. */
  readonly expected: string;
}

export interface FoundCases {
  /** Sorted by group and name, each once. */
  readonly cases: readonly FoundCase[];
  /** In what was searched: for names, only where they were found. */
  readonly orphans: readonly Orphan[];
}

interface Search {
  /** Names, `group/name`, patterns such as `orchestration/*`, and paths of files or folders. None: all cases. */
  readonly names?: readonly string[];
  readonly cwd: string;
  /** Where cases are, relative to `cwd`. */
  readonly folder?: string;
}

/** Finds cases: `cases/**\/<name>/<name>.toml`. Throws CASE_NOT_FOUND for a name that is none. */
export function findCases({ names = [], cwd, folder = 'cases' }: Search): FoundCases {
  const root = resolve(cwd, folder);
  const all = searchFolder({ root, from: root, cwd });
  if (names.length === 0) return all;
  const found = names.map(name => select(name, { all, root, cwd }));
  return {
    cases: sorted(unique(found.flatMap(({ cases }) => cases))),
    orphans: unique(found.flatMap(({ orphans }) => orphans)),
  };
}

interface Known {
  readonly all: FoundCases;
  readonly root: string;
  readonly cwd: string;
}

function select(name: string, { all, root, cwd }: Known): FoundCases {
  const wanted = name.replace(/^\.\//, '').replace(/\/+$/, '');
  const byName = all.cases.filter(found => found.name === wanted || idOf(found) === wanted);
  if (byName.length > 0) return { cases: byName, orphans: [] };
  const inGroup = all.cases.filter(({ group }) => group === wanted || group.startsWith(`${wanted}/`));
  if (inGroup.length > 0) return { cases: inGroup, orphans: [] };
  const byPath = selectPath(name, { all, root, cwd });
  if (byPath) return byPath;
  if (wanted.includes('*')) {
    const fitting = all.cases.filter(
      found => fitsPath(wanted, idOf(found)) || fitsPath(wanted, dirname(found.displayFile)),
    );
    if (fitting.length > 0) return { cases: fitting, orphans: [] };
  }
  throw unknownCase(name, all);
}

function selectPath(name: string, { root, cwd }: Known): FoundCases | undefined {
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
        : 'write one as cases/<group>/<name>/<name>.toml';
  return new RepriseError('CASE_NOT_FOUND', `there is no test case \`${name}\``, { hint });
}

const mostListed = 10;

const listed = (ids: readonly string[]): string =>
  ids.length > mostListed
    ? `${ids.slice(0, mostListed).join(', ')} and ${ids.length - mostListed} more`
    : ids.join(', ');

/** What is wrong with a folder of recordings, and what to do. */
export const explainOrphan = ({ displayFolder, files, misnamed, expected }: Orphan): string =>
  misnamed
    ? `${displayFolder}/${misnamed} is not where case files are looked for: move it to ${expected}`
    : `${displayFolder} has recordings (${listed(files)}) and no case file: write ${expected}, or remove them`;

/** `group/name`: a case as people name it. */
export const idOf = ({ group, name }: Pick<FoundCase, 'group' | 'name'>): string =>
  group === '' ? name : `${group}/${name}`;

interface Place {
  /** The folder that groups are named from. */
  readonly root: string;
  readonly cwd: string;
}

function searchFolder({ from, ...place }: Place & { readonly from: string }): FoundCases {
  const cases: FoundCase[] = [];
  const orphans: Orphan[] = [];
  const visit = (folder: string): void => {
    const entries = entriesOf(folder);
    const names = entries.filter(entry => !entry.isDirectory()).map(entry => entry.name);
    const own = `${basename(folder)}.toml`;
    // What is in the root belongs to no case, or it would hide all the others.
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

function caseAt({ file, root, cwd }: Place & { readonly file: string }): FoundCase {
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

/** A folder that is not there holds nothing. */
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

/** Not by locale: the order must be the same everywhere. */
const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const sorted = (cases: readonly FoundCase[]): readonly FoundCase[] =>
  cases.toSorted((a, b) => order(a.group, b.group) || order(a.name, b.name));

const unique = <T extends { readonly folder: string }>(all: readonly T[]): readonly T[] => [
  ...new Map(all.map(item => [item.folder, item])).values(),
];
