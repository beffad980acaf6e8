const maxWidth = 110;

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

  /** The line of `start` with a caret under each character up to `end`, or up to the end of the line. */
  excerpt({ start, end }: { readonly start: number; readonly end: number }): string {
    const { line, column } = this.at(start);
    const lineStart = this.#start(line - 1);
    const nextLine = this.#starts[line] ?? this.#text.length + 1;
    const whole = this.#text.slice(lineStart, nextLine - 1).trimEnd();
    const from = Math.max(0, Math.min(column - 1 - maxWidth / 2, whole.length - maxWidth));
    const shown = whole.slice(from, from + maxWidth);
    const before = shown.slice(0, column - 1 - from).replace(/[^\t]/g, ' ');
    const room = Math.max(1, Math.min(whole.length, from + maxWidth) - (column - 1));
    const carets = '^'.repeat(Math.max(1, Math.min(end - start, room)));
    const number = String(line).padStart(4);
    return `${number} | ${shown}\n${' '.repeat(number.length)} | ${before}${carets}`;
  }

  #start(line: number): number {
    return this.#starts[line] ?? 0;
  }
}
