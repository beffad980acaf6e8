import { StringDecoder } from 'node:string_decoder';

/** Longer lines are handed on without their end, which is then marked with `…`. */
export const maxLineLength = 8192;

/** Cuts a stream of bytes into lines, and keeps no more than one line in memory, however long it gets. */
export class LineSplitter {
  readonly #decoder = new StringDecoder('utf8');
  readonly #onLine: (line: string, isCut: boolean) => void;
  readonly #maxLength: number;
  #open = '';

  constructor(onLine: (line: string, isCut: boolean) => void, maxLength = maxLineLength) {
    this.#onLine = onLine;
    this.#maxLength = maxLength;
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
    this.#open += text.slice(0, this.#maxLength + 1 - this.#open.length);
  }

  #handOn(): void {
    const line = this.#open;
    this.#open = '';
    if (line.length > this.#maxLength) this.#onLine(`${line.slice(0, this.#maxLength)}…`, true);
    else this.#onLine(line.endsWith('\r') ? line.slice(0, -1) : line, false);
  }
}
