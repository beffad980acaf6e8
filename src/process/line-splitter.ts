import { StringDecoder } from 'node:string_decoder';

/** Longer lines are handed on without their end, which is then marked with `…`. */
export const maxLineLength = 8192;

/** Cuts a stream of bytes into lines, and keeps no more than one line in memory, however long it gets. */
export class LineSplitter {
  readonly #decoder = new StringDecoder('utf8');
  readonly #onLine: (line: string) => void;
  #open = '';

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  push(chunk: Buffer): void {
    const [first = '', ...rest] = this.#decoder.write(chunk).split('\n');
    this.#extend(first);
    for (const part of rest) {
      this.#handOn();
      this.#extend(part);
    }
  }

  /** Hands on what came after the last line break. */
  end(): void {
    this.#extend(this.#decoder.end());
    if (this.#open !== '') this.#handOn();
  }

  #extend(text: string): void {
    // One character beyond the limit is kept, which says that there was more.
    this.#open += text.slice(0, maxLineLength + 1 - this.#open.length);
  }

  #handOn(): void {
    const line = this.#open;
    this.#open = '';
    if (line.length > maxLineLength) this.#onLine(`${line.slice(0, maxLineLength)}…`);
    else this.#onLine(line.endsWith('\r') ? line.slice(0, -1) : line);
  }
}
