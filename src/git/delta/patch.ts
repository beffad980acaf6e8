import type { Git } from '../git.ts';
import { printable } from '../names.ts';
import type { Repository } from '../repository.ts';
import { objectStoreOf, withBareShadow } from './shadow.ts';
import { isSameIndex, newStashes, type WorktreeState } from './state.ts';

export interface PatchRequest {
  readonly repository: Repository;
  /** Folder with the objects of the states that the repository does not have. */
  readonly objectsDir?: string | undefined;
  readonly before: WorktreeState;
  readonly after: WorktreeState;
}

/** Returns the changes of a session as a patch for reviewers. The same states give the same text on every machine. */
export const patchOf = ({ repository, objectsDir, before, after }: PatchRequest): Promise<string> =>
  withBareShadow(objectStoreOf(repository, formatOf(after.tree)), { objectsDir }, async git => {
    const [commits, diff] = await Promise.all([
      commitLines(git, before, after),
      diffText(git, before, after),
    ]);
    const summary = [...headLines(before, after), ...commits, ...otherLines(before, after)];
    return [...summary.map(line => `# ${line}\n`), diff].join('');
  });

const formatOf = (id: string): string => (id.length === 64 ? 'sha256' : 'sha1');

function headLines({ head: before }: WorktreeState, { head: after }: WorktreeState): readonly string[] {
  const name = (branch: string | null) => (branch === null ? 'no branch' : printable(branch));
  const short = (commit: string | null) => commit?.slice(0, 12) ?? 'no commit';
  return [
    ...(before.branch === after.branch ? [] : [`branch: ${name(before.branch)} -> ${name(after.branch)}`]),
    ...(before.commit === after.commit ? [] : [`head: ${short(before.commit)} -> ${short(after.commit)}`]),
  ];
}

async function commitLines(
  git: Git,
  { head: { commit: from } }: WorktreeState,
  { head: { commit: tip } }: WorktreeState,
): Promise<readonly string[]> {
  if (tip === null || tip === from) return [];
  const range = from === null ? [tip] : [tip, `^${from}`];
  const args = ['rev-list', '--reverse', '--topo-order', '--no-commit-header', '--format=%H %s'];
  const lines = (await git.ok([...args, ...range])).split('\n').filter(line => line !== '');
  return lines.map(line => `commit ${line.slice(0, 12)} ${visible(line.slice(line.indexOf(' ') + 1))}`);
}

function otherLines(before: WorktreeState, after: WorktreeState): readonly string[] {
  const folders = after.emptyFolders.filter(folder => !before.emptyFolders.includes(folder));
  return [
    ...newStashes(before, after).map(({ message }) => `stash ${visible(message)}`),
    ...Object.entries(after.refs).map(
      ([name, value]) => `ref ${printable(name)} ${value?.slice(0, 12) ?? 'deleted'}`,
    ),
    ...(isSameIndex(before.index, after.index) || after.index.tree === after.tree
      ? []
      : [`staged: tree ${after.index.tree.slice(0, 12)}`]),
    ...after.index.intentToAdd.map(path => `intent to add ${printable(path)}`),
    ...folders.map(folder => `empty folder ${printable(folder)}`),
  ];
}

/** Replaces characters that could control a terminal. */
const visible = (text: string): string => text.replace(/\p{Cc}|\p{Cf}/gu, '?');

async function diffText(git: Git, before: WorktreeState, after: WorktreeState): Promise<string> {
  if (before.tree === after.tree) return '';
  const diff = await git.ok([
    ...['-c', 'core.quotePath=true', '-c', 'diff.suppressBlankEmpty=false', 'diff-tree', '-r', '--patch'],
    ...[
      '--full-index',
      '--find-renames=50%',
      '-l0',
      '--unified=3',
      '--diff-algorithm=myers',
      '--indent-heuristic',
    ],
    ...['--no-color', '--no-ext-diff', '--no-textconv', '--no-relative', '--submodule=short'],
    ...['--inter-hunk-context=0', '--src-prefix=a/', '--dst-prefix=b/'],
    ...[before.tree, after.tree],
  ]);
  return withSizes(git, diff);
}

const indexLine = /^index ([0-9a-f]+)\.\.([0-9a-f]+)/;
const isBinaryNote = (line: string): boolean => line.startsWith('Binary files ') && line.endsWith(' differ');

/**
 * Replaces "Binary files differ" with sizes. A line of a file is never mistaken for that note, because it starts with
 * a space, `+` or `-`.
 */
async function withSizes(git: Git, diff: string): Promise<string> {
  const lines = diff.split('\n');
  const blobs = lines.map((line, i) => (isBinaryNote(line) ? indexLine.exec(lines[i - 1] ?? '') : null));
  const names = [...new Set(blobs.flatMap(match => match?.slice(1, 3) ?? []))].filter(
    name => !/^0+$/.test(name),
  );
  if (names.length === 0) return diff;
  const input = [...names, ''].join('\n');
  const checked = await git.ok(['cat-file', '--batch-check=%(objectname) %(objectsize)'], { input });
  const sizes = new Map(checked.split('\n').map(line => [line.split(' ')[0], line.split(' ')[1]]));
  const sizeOf = (name: string | undefined) => sizes.get(name) ?? '0';
  return lines
    .map((line, i) => {
      const [, from, to] = blobs[i] ?? [];
      return to === undefined ? line : `binary, ${sizeOf(from)} -> ${sizeOf(to)} bytes`;
    })
    .join('\n');
}
