import { lstatSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ConflictedMerge, Stage } from './commits.ts';

/** What stands behind the markers: `<<<<<<< ours`, `>>>>>>> theirs`. */
export interface MarkerLabels {
  readonly ours: string;
  readonly theirs: string;
}

export interface ConflictedFile {
  readonly path: string;
  readonly kind: ConflictKind;
  /** What happened to it and how it lies there, for whoever has to solve it. */
  readonly words: string;
}

/**
 * `text`: with markers in it. `binary`: changed by both, but not to be merged line by line. `deleted-by-ours`,
 * `deleted-by-theirs`: and changed by the other. `moved`: the two disagree on what the path is.
 */
export type ConflictKind = 'text' | 'binary' | 'deleted-by-ours' | 'deleted-by-theirs' | 'moved';

/** Whether conflicts were left in a text: it has lines with all three markers. Characters may stand for bytes. */
export const hasMarkers = (text: string): boolean =>
  /^<{7,} /m.test(text) && /^={7,}\r?$/m.test(text) && /^>{7,} /m.test(text);

/** The same for exactly what was laid out, for files that have markers of their own. */
export const hasLabels = (text: string, { ours, theirs }: MarkerLabels): boolean =>
  line('<', asBytes(ours)).test(text) && line('>', asBytes(theirs)).test(text);

/** Names of commits behind the markers become words. */
const relabelled = (text: string, from: MarkerLabels, to: MarkerLabels): string =>
  text
    .replace(line('<', from.ours), (_, marker: string) => `${marker}${asBytes(to.ours)}`)
    .replace(line('>', from.theirs), (_, marker: string) => `${marker}${asBytes(to.theirs)}`);

/** Git adds the name of the file to a label if that differs. */
const line = (marker: '<' | '>', label: string): RegExp =>
  new RegExp(`^(${marker}{7,} )${label.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}(?=:|\\r?$)`, 'gm');

const asBytes = (text: string): string => Buffer.from(text).toString('latin1');

/** One character for each byte; `undefined` if it is not a plain file. */
export function bytesOfFile(folder: string, path: string): string | undefined {
  const file = join(folder, path);
  const isFile = lstatSync(file, { throwIfNoEntry: false })?.isFile() ?? false;
  return isFile ? readFileSync(file, 'latin1') : undefined;
}

/** Puts words behind the markers of what git has just laid out, and says how each file stands. */
export function describeConflicts(
  folder: string,
  { files, stages, sides, labels }: Omit<ConflictedMerge, 'kind' | 'tree'> & { labels: MarkerLabels },
): readonly ConflictedFile[] {
  return files.map(path => {
    const text = bytesOfFile(folder, path);
    const isMarked = text !== undefined && hasMarkers(text);
    if (isMarked) writeFileSync(join(folder, path), relabelled(text, sides, labels), 'latin1');
    return describeConflict(path, { stages, isMarked, onto: labels.ours });
  });
}

/** How a file stands of which the sides have `stages`; `isMarked`: with markers in it. */
export function describeConflict(
  path: string,
  {
    stages,
    isMarked,
    onto,
  }: { readonly stages: readonly Stage[]; readonly isMarked: boolean; readonly onto: string },
): ConflictedFile {
  const kind = kindOf(
    stages.filter(each => each.path === path),
    isMarked,
  );
  return { path, kind, words: words(kind, onto) };
}

function kindOf(stages: readonly Stage[], isMarked: boolean): ConflictKind {
  const has = (stage: Stage['stage']) => stages.some(each => each.stage === stage);
  if (stages.some(({ mode }) => mode === '160000')) return 'moved';
  if (has(2) && has(3)) return isMarked ? 'text' : 'binary';
  if (has(1) && has(2)) return 'deleted-by-theirs';
  if (has(1) && has(3)) return 'deleted-by-ours';
  return isMarked ? 'text' : 'moved';
}

function words(kind: ConflictKind, onto: string): string {
  switch (kind) {
    case 'text':
      return 'changed on both sides; markers show where';
    case 'binary':
      return `changed on both sides, and cannot be merged line by line; it is here as ${onto} has it`;
    case 'deleted-by-ours':
      return `deleted on ${onto}, changed by this commit; it is here as this commit has it`;
    case 'deleted-by-theirs':
      return `changed on ${onto}, deleted by this commit; it is here as ${onto} has it`;
    case 'moved':
      return `renamed, moved or replaced in different ways on ${onto} and by this commit`;
  }
}
