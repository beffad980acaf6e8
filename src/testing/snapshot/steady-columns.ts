import { displayWidth } from '../../terminal/text.ts';

/** The blanks before a cell of a table whose width was that of a duration or a cost. */
const beforeUnsteadyCell = /(?<=\S) {2,}(?=(?:>= |took )?<(?:DURATION|COST)>(?: ago)?(?: {2,}|$))/;

/**
 * A table is laid out for the values that it had before they were replaced: `9.9s` and `10.0s` move all that comes
 * after them. From such a column on, cells are two blanks apart.
 */
export function steadyColumns(text: string): string {
  const lines = text.split('\n');
  let start = 0;
  const steady: string[] = [];
  for (let end = 0; end <= lines.length; end++) {
    if (end < lines.length && lines[end] !== '') continue;
    steady.push(...steadyTable(lines.slice(start, end)), ...lines.slice(end, end + 1));
    start = end + 1;
  }
  return steady.join('\n');
}

function steadyTable(lines: readonly string[]): readonly string[] {
  const widths = lines.flatMap(line => {
    const gap = beforeUnsteadyCell.exec(line);
    return gap ? [displayWidth(line.slice(0, gap.index))] : [];
  });
  if (widths.length === 0) return lines;
  const column = widths.reduce((widest, width) => Math.max(widest, width), 0);
  return lines.map(line => {
    const gap = beforeUnsteadyCell.exec(line) ?? gapAcross(line, column);
    if (!gap) return line;
    const before = line.slice(0, gap.index);
    const after = line.slice(gap.index + gap[0].length).replace(/(?<=\S) {2,}/g, '  ');
    return `${before}${' '.repeat(Math.max(0, column - displayWidth(before)))}  ${after}`;
  });
}

/** Where a row has nothing in the column that is not steady. */
function gapAcross(line: string, column: number): RegExpExecArray | undefined {
  for (const gap of line.matchAll(/(?<=\S) {2,}(?=\S)/g)) {
    if (displayWidth(line.slice(0, gap.index + gap[0].length)) > column) return gap;
  }
  return undefined;
}
