import { type Colour, displayWidth, filled, filledBefore, type Paint, truncate } from './text.ts';

/** Cell of a table. Its text must not contain escape sequences or line feeds. */
export interface Cell {
  /** Text before the main text, without color. */
  readonly lead?: string | undefined;
  readonly text: string;
  readonly colour?: Colour | undefined;
}

export interface Column {
  readonly align?: 'left' | 'right';
  /** Whether the column shrinks, down to `narrowest`, if the rows are too wide. */
  readonly shrinks?: boolean;
}

export interface TableOptions {
  readonly columns: readonly Column[];
  readonly width: number;
  readonly paint: Paint;
  readonly ellipsis: string;
  readonly indent?: string;
}

const gap = 2;
const narrowest = 6;

/**
 * Formats rows with aligned columns, none wider than `width`. The last column is truncated to the remaining width. If
 * nothing remains, columns are dropped from the right. An empty column takes no room.
 */
export function tableLines(rows: readonly (readonly Cell[])[], options: TableOptions): readonly string[] {
  const { columns, paint, ellipsis, indent = '' } = options;
  const widths = columnWidths(rows, options);
  return rows.map(row => {
    const cells = columns.flatMap((column, index) => {
      const width = widths[index] ?? 0;
      if (width === 0) return [];
      const cell = row[index];
      const text = textOf(cell);
      if (index === columns.length - 1) return [paintCell(cell, truncate(text, width, ellipsis), paint)];
      return [
        paintCell(
          cell,
          column.align === 'right' ? filledBefore(text, width) : filled(text, width, ellipsis),
          paint,
        ),
      ];
    });
    return `${indent}${cells.join(' '.repeat(gap))}`.trimEnd();
  });
}

const textOf = (cell: Cell | undefined): string => `${cell?.lead ?? ''}${cell?.text ?? ''}`;

/** Colors the text of a cell, but not the blanks around it. */
function paintCell(cell: Cell | undefined, shown: string, paint: Paint): string {
  const lead = shown.slice(0, cell?.lead?.length ?? 0);
  const rest = shown.slice(lead.length);
  return lead + rest.replace(rest.trim(), visible => paint(cell?.colour, visible));
}

function columnWidths(rows: readonly (readonly Cell[])[], options: TableOptions): readonly number[] {
  const { columns, width, indent = '' } = options;
  const widths = columns.map((_, index) =>
    rows.reduce((widest, row) => Math.max(widest, displayWidth(textOf(row[index]))), 0),
  );
  const total = () => widths.reduce((sum, each) => sum + (each > 0 ? each + gap : 0), indent.length - gap);
  const give = (index: number, least: number) => {
    const wanted = widths[index] ?? 0;
    widths[index] = Math.max(Math.min(wanted, least), wanted - Math.max(0, total() - width));
  };
  const last = columns.length - 1;
  const usefulRest = Math.min(16, Math.floor(width / 4));
  give(last, usefulRest);
  columns.forEach((column, index) => {
    if (column.shrinks && index !== last) give(index, narrowest);
  });
  give(last, narrowest);
  for (let index = last; index > 0 && total() > width; index--) widths[index] = 0;
  give(0, 1);
  return widths;
}
