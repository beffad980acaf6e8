import { type DiffLine, diffLines } from '../../core/index.ts';

export type Comparison =
  | { readonly equal: true }
  | { readonly equal: false; readonly diff: string; readonly removed: number; readonly added: number };

const context = 3;

/** Compares two snapshots. The hunks of the unified diff name their section: `@@ -3,4 +3,5 @@ worker_a`. */
export function compareSnapshot({
  expected,
  actual,
}: {
  readonly expected: string;
  readonly actual: string;
}): Comparison {
  const before = withLineFeeds(expected);
  const after = withLineFeeds(actual);
  if (before === after) return { equal: true };
  const bothEnd = before.endsWith('\n') && after.endsWith('\n');
  const linesOf = (text: string) => (bothEnd ? text.slice(0, -1) : text).split('\n');
  const lines = numbered(diffLines(linesOf(before), linesOf(after)));
  const count = (kind: DiffLine['kind']) => lines.filter(line => line.kind === kind).length;
  const diff = hunksOf(lines).map(hunkText).join('');
  return { equal: false, diff, removed: count('removed'), added: count('added') };
}

/** Undoes a change of line endings by the checkout. A snapshot itself never contains carriage returns. */
const withLineFeeds = (text: string): string => text.replaceAll('\r\n', '\n');

interface NumberedLine extends DiffLine {
  /** Number of expected lines before this one. */
  readonly before: number;
  /** Number of actual lines before this one. */
  readonly after: number;
  readonly section: string;
}

function numbered(lines: readonly DiffLine[]): readonly NumberedLine[] {
  let before = 0;
  let after = 0;
  let section = '';
  return lines.map(line => {
    const title = line.kind === 'removed' ? undefined : /^--- (.+) ---$/.exec(line.text)?.[1];
    section = title ?? section;
    const placed = { ...line, before, after, section };
    if (line.kind !== 'added') before++;
    if (line.kind !== 'removed') after++;
    return placed;
  });
}

/** Groups changed lines with their context. Nearby changes form one hunk. */
function hunksOf(lines: readonly NumberedLine[]): readonly (readonly NumberedLine[])[] {
  const ranges: { start: number; end: number }[] = [];
  lines.forEach(({ kind }, index) => {
    if (kind === 'same') return;
    const start = Math.max(0, index - context);
    const end = Math.min(lines.length, index + context + 1);
    const last = ranges.at(-1);
    if (last && start <= last.end) last.end = end;
    else ranges.push({ start, end });
  });
  return ranges.map(({ start, end }) => lines.slice(start, end));
}

function hunkText(hunk: readonly NumberedLine[]): string {
  const [first] = hunk;
  if (!first) return '';
  const changed = hunk.find(({ kind }) => kind !== 'same') ?? first;
  const before = hunk.filter(({ kind }) => kind !== 'added').length;
  const after = hunk.filter(({ kind }) => kind !== 'removed').length;
  const start = (lines: number, count: number) => (count === 0 ? lines : lines + 1);
  const where = `@@ -${start(first.before, before)},${before} +${start(first.after, after)},${after} @@`;
  const marks = { same: ' ', removed: '-', added: '+' } as const;
  return [
    `${where} ${changed.section}`.trimEnd(),
    ...hunk.map(({ kind, text }) => (kind === 'same' && text === '' ? '' : `${marks[kind]}${text}`)),
    '',
  ].join('\n');
}
