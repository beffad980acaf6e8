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

/** How many columns a text without escape sequences takes in a terminal. */
export function displayWidth(text: string): number {
  if (plain.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += graphemeWidth(segment);
  return width;
}

/** The text, cut to so many columns; `ellipsis` stands for what is missing. */
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

/** A name for a column that is never left out: a third of the line, but enough to tell names apart. */
export const nameFor = (name: string, columns: number, ellipsis?: string): string =>
  truncate(name, Math.max(8, Math.floor(columns / 3)), ellipsis);

/** Cut or filled up with blanks, so that it takes exactly so many columns. */
export function filled(text: string, columns: number, ellipsis = '…'): string {
  const cut = truncate(text, columns, ellipsis);
  return cut + ' '.repeat(Math.max(0, columns - displayWidth(cut)));
}

/** The same with the blanks before it. */
export function filledBefore(text: string, columns: number): string {
  const cut = truncate(text, columns);
  return ' '.repeat(Math.max(0, columns - displayWidth(cut))) + cut;
}

/** The text on as many lines as it takes, broken between words; a word that is wider than a line is cut. */
export function wrapped(text: string, columns: number, ellipsis = '…'): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const longer = `${lines.at(-1) ?? ''} ${word}`;
    if (lines.length > 0 && displayWidth(longer) <= columns) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.map(line => truncate(line, columns, ellipsis));
}
