import { displayWidth, filled, filledBefore, truncate, wrapped } from './text.ts';

/** One row of the diagram: a lane and what it did. */
export interface LaneRow {
  readonly lane: string;
  readonly text: string;
}

export interface LaneDiagramOptions {
  /** Width of the terminal. Defaults to 80. */
  readonly columns?: number;
  /** Lanes with a column, from left to right. Defaults to the lanes of the rows, in order of appearance. */
  readonly lanes?: readonly string[];
}

const gap = 2;
/** Minimum width of a column. In a narrower one, truncated names could not be told apart. */
const narrowest = 14;
const mostLines = 3;

/** Draws a schedule with one row per effect and one column per lane. If the columns do not fit, each row names its lane. */
export function laneDiagram(
  rows: readonly LaneRow[],
  { columns = 80, lanes = [...new Set(rows.map(({ lane }) => lane))] }: LaneDiagramOptions = {},
): readonly string[] {
  const numbers = String(rows.length).length;
  const width = Math.floor((columns - numbers) / Math.max(lanes.length, 1)) - gap;
  return width < narrowest && lanes.length > 1
    ? listed(rows, { lanes, numbers, columns })
    : beside(rows, { lanes, numbers, width });
}

interface DiagramLayout {
  readonly lanes: readonly string[];
  readonly numbers: number;
}

function beside(
  rows: readonly LaneRow[],
  { lanes, numbers, width }: DiagramLayout & { readonly width: number },
): readonly string[] {
  const line = (number: string, cells: readonly string[]) =>
    [filledBefore(number, numbers), ...cells.map(cell => filled(cell, width))]
      .join(' '.repeat(gap))
      .trimEnd();
  const cellsOf = (row: LaneRow, text: string) => lanes.map(lane => (lane === row.lane ? text : idle));
  return [
    line(
      '',
      lanes.map(lane => truncate(lane, width)),
    ),
    ...rows.flatMap((row, index) =>
      wrapped(row.text, width)
        .slice(0, mostLines)
        .map((text, part) => line(part === 0 ? String(index + 1) : '', cellsOf(row, text))),
    ),
  ];
}

/** Cell of a lane that does nothing in this row. */
const idle = '│';

function listed(
  rows: readonly LaneRow[],
  { lanes, numbers, columns }: DiagramLayout & { readonly columns: number },
): readonly string[] {
  const name = Math.min(Math.floor(columns / 3), Math.max(...lanes.map(displayWidth)));
  return rows.map(({ lane, text }, index) => {
    const start = `${filledBefore(String(index + 1), numbers)}  ${filled(lane, name)}  `;
    return `${start}${truncate(text, columns - displayWidth(start))}`;
  });
}
