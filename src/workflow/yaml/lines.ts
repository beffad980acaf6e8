const maxWidth = 110;
const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });
const empty = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;
const wide =
  /^[\p{Emoji_Presentation}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303E\uFF01-\uFF60\uFFE0-\uFFE6]|\uFE0F/u;
const halfWidth = /^[\uFF61-\uFFDC]/u;

/** How many columns a terminal gives to a text: two for an East Asian wide character or an emoji. */
function displayWidth(text: string): number {
  if (/^[\u0020-\u007E]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text))
    if (!empty.test(segment)) width += wide.test(segment) && !halfWidth.test(segment) ? 2 : 1;
  return width;
}

/** Lines and columns of a text. */
export class LineIndex {
  readonly #text: string;
  readonly #starts: readonly number[];

  constructor(text: string) {
    const starts = [0];
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
    this.#text = text;
    this.#starts = starts;
  }

  /** Both count from 1. */
  at(offset: number): { readonly line: number; readonly column: number } {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.#start(middle) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - this.#start(low) + 1 };
  }

  /** The line of `start` with carets under it up to `end`, or up to the end of the line. */
  excerpt({ start, end }: { readonly start: number; readonly end: number }): string {
    const { line, column } = this.at(start);
    const lineStart = this.#start(line - 1);
    const nextLine = this.#starts[line] ?? this.#text.length + 1;
    const whole = this.#text.slice(lineStart, nextLine - 1).trimEnd();
    const from = Math.max(0, Math.min(column - 1 - maxWidth / 2, whole.length - maxWidth));
    const shown = whole.slice(from, from + maxWidth);
    const at = column - 1 - from;
    const before = shown.slice(0, at).replace(/[^\t]+/g, text => ' '.repeat(displayWidth(text)));
    const carets = '^'.repeat(Math.max(1, displayWidth(shown.slice(at, at + end - start))));
    const number = String(line).padStart(4);
    return `${number} | ${shown}\n${' '.repeat(number.length)} | ${before}${carets}`;
  }

  #start(line: number): number {
    return this.#starts[line] ?? 0;
  }
}
