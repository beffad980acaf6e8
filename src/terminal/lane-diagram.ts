import { displayWidth, filled, filledBefore, truncate, wrapped } from './text.ts';

/** Something that a lane did. */
export interface LaneRow {
  readonly lane: string;
  readonly text: string;
}

export interface LaneDiagramOptions {
  /** 80 unless it is said. */
  readonly columns?: number;
  /** Which lanes have columns, from left to right; those that have rows, as they come, unless it is said. */
  readonly lanes?: readonly string[];
}

const gap = 2;
/** Narrower than this, what was done cannot be told by what is left of its name. */
const narrowest = 14;
const mostLines = 3;

/**
 * What lanes did, in its order: time goes downwards, and each lane has a column. More lanes than there is room for
 * beside each other are named on each line instead.
 */
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

interface Layout {
  readonly lanes: readonly string[];
  readonly numbers: number;
}

function beside(
  rows: readonly LaneRow[],
  { lanes, numbers, width }: Layout & { readonly width: number },
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

/** A lane that does nothing at that time. */
const idle = '│';

function listed(
  rows: readonly LaneRow[],
  { lanes, numbers, columns }: Layout & { readonly columns: number },
): readonly string[] {
  const name = Math.min(Math.floor(columns / 3), Math.max(...lanes.map(displayWidth)));
  return rows.map(({ lane, text }, index) => {
    const start = `${filledBefore(String(index + 1), numbers)}  ${filled(lane, name)}  `;
    return `${start}${truncate(text, columns - displayWidth(start))}`;
  });
}
