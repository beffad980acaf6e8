import { formatDuration } from '../core/index.ts';

/** Characters that JSON does not escape, although they control a terminal or make it show misleading text. */
const harmful = /[\u007F-\u009F\u061C\u200B\u200E\u200F\u2028-\u202E\u2060\u2066-\u2069\uFEFF]/g;

/** Formats a value as JSON that is safe in a terminal. It parses to the same value. */
export const jsonText = (value: unknown, indent = 0): string =>
  JSON.stringify(value, null, indent).replace(
    harmful,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** `1 step`, `3 steps`, `2 copies`. */
export const count = (amount: number, noun: string, plural = `${noun}s`): string =>
  `${amount} ${amount === 1 ? noun : plural}`;

const codes = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  blue: [34, 39],
  magenta: [35, 39],
  cyan: [36, 39],
} as const;

export type Colour = keyof typeof codes;

/** Colors text, or returns it unchanged. */
export type Paint = (colour: Colour | undefined, text: string) => string;

const colourful: Paint = (colour, text) => {
  if (colour === undefined || text === '') return text;
  const [on, off] = codes[colour];
  return `\u001B[${on}m${text}\u001B[${off}m`;
};

/** The only source of color sequences. Without `color`, it adds none. */
export const painter = (color: boolean): Paint => (color ? colourful : (_, text) => text);

const two = (value: number): string => String(value).padStart(2, '0');

/** `12:01:03` in the local time zone. */
export function clockTime(epochMs: number): string {
  const date = new Date(epochMs);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':');
}

/** `12:01:03.250` */
export const preciseTime = (epochMs: number): string =>
  `${clockTime(epochMs)}.${String(new Date(epochMs).getMilliseconds()).padStart(3, '0')}`;

/** `2026-01-31` in the local time zone. */
export function calendarDay(epochMs: number): string {
  const date = new Date(epochMs);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

const day = 86_400_000;

/** `just now`, `42s ago`, `3h 05m ago`, `4 days ago`, or the date after 30 days. */
export function relativeTime(epochMs: number, now: number): string {
  const ago = now - epochMs;
  if (ago < 1000) return 'just now';
  if (ago < 60_000) return `${Math.floor(ago / 1000)}s ago`;
  if (ago < day) return `${formatDuration(ago)} ago`;
  if (ago < 2 * day) return '1 day ago';
  return ago < 30 * day ? `${Math.floor(ago / day)} days ago` : calendarDay(epochMs);
}

const plain = /^[\u0020-\u007E]*$/;
const narrow = /^[\uFF61-\uFFDC]/u;
const wide =
  /^[\p{Emoji_Presentation}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\u3000-\u303E\uFF01-\uFF60\uFFE0-\uFFE6]|\uFE0F/u;
const empty = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;
const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

function graphemeWidth(grapheme: string): number {
  if (empty.test(grapheme)) return 0;
  return wide.test(grapheme) && !narrow.test(grapheme) ? 2 : 1;
}

/** Width in terminal columns of text without escape sequences. */
export function displayWidth(text: string): number {
  if (plain.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += graphemeWidth(segment);
  return width;
}

/** Truncates text to `columns`, ending with `ellipsis` if anything was cut. */
export function truncate(text: string, columns: number, ellipsis = '…'): string {
  if (displayWidth(text) <= columns) return text;
  const room = columns - displayWidth(ellipsis);
  if (room <= 0) return ellipsis.slice(0, Math.max(0, columns));
  let width = 0;
  let kept = '';
  for (const { segment } of graphemes.segment(text)) {
    width += graphemeWidth(segment);
    if (width > room) break;
    kept += segment;
  }
  return `${kept.trimEnd()}${ellipsis}`;
}

/** Truncates a name to a third of the line, but never to less than eight columns, so that names can be told apart. */
export const nameFor = (name: string, columns: number, ellipsis?: string): string =>
  truncate(name, Math.max(8, Math.floor(columns / 3)), ellipsis);

/** Truncates text or pads it on the right to exactly `columns`. */
export function filled(text: string, columns: number, ellipsis = '…'): string {
  const cut = truncate(text, columns, ellipsis);
  return cut + ' '.repeat(Math.max(0, columns - displayWidth(cut)));
}

/** Truncates text or pads it on the left to exactly `columns`. */
export function filledBefore(text: string, columns: number): string {
  const cut = truncate(text, columns);
  return ' '.repeat(Math.max(0, columns - displayWidth(cut))) + cut;
}

/** Wraps text between words. A word that is wider than a line is truncated. */
export function wrapped(text: string, columns: number, ellipsis = '…'): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const longer = `${lines.at(-1) ?? ''} ${word}`;
    if (lines.length > 0 && displayWidth(longer) <= columns) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.map(line => truncate(line, columns, ellipsis));
}

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

interface TableOptions {
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
