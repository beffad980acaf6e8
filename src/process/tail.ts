/** The last bytes of a stream, in memory that does not grow. */
export class Tail {
  readonly #ring: Buffer;
  #written = 0;

  constructor(bytes: number) {
    this.#ring = Buffer.alloc(bytes);
  }

  push(chunk: Buffer): void {
    const size = this.#ring.length;
    const kept = chunk.subarray(Math.max(0, chunk.length - size));
    const at = size === 0 ? 0 : (this.#written + chunk.length - kept.length) % size;
    const untilWrap = kept.copy(this.#ring, at);
    kept.copy(this.#ring, 0, untilWrap);
    this.#written += chunk.length;
  }

  /** As text. A character that lost its first bytes is left out. */
  text(): string {
    const size = this.#ring.length;
    if (this.#written <= size) return this.#ring.toString('utf8', 0, this.#written);
    const at = this.#written % size;
    const bytes = Buffer.concat([this.#ring.subarray(at), this.#ring.subarray(0, at)]);
    return bytes.toString('utf8', bytes.subarray(0, 4).findIndex(isFirstByte));
  }
}

const isFirstByte = (byte: number): boolean => (byte & 0b1100_0000) !== 0b1000_0000;
