import { createWriteStream, mkdirSync, openSync, type WriteStream } from 'node:fs';
import { dirname } from 'node:path';
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

/** Default limit. Longer lines are cut and marked with `…`. */
export const maxLineLength = 8192;

/** Splits a stream of bytes into lines. Keeps at most one line of limited length in memory. */
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
      this.#emit();
      this.#extend(part);
    }
  }

  /** Emits the text after the last line break. */
  end(): void {
    this.#extend(this.#decoder.end());
    if (this.#open !== '') this.#emit();
  }

  #extend(text: string): void {
    // One character beyond the limit is kept, which shows that the line was longer.
    this.#open += text.slice(0, this.#maxLength + 1 - this.#open.length);
  }

  #emit(): void {
    const line = this.#open;
    this.#open = '';
    if (line.length > this.#maxLength) this.#onLine(`${line.slice(0, this.#maxLength)}…`, true);
    else this.#onLine(line.endsWith('\r') ? line.slice(0, -1) : line, false);
  }
}

/** Ring buffer with the last bytes of a stream. */
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

  /** Returns the bytes as text, without a leading character that is incomplete. */
  text(): string {
    const size = this.#ring.length;
    if (this.#written <= size) return this.#ring.toString('utf8', 0, this.#written);
    const at = this.#written % size;
    const bytes = Buffer.concat([this.#ring.subarray(at), this.#ring.subarray(0, at)]);
    return bytes.toString('utf8', bytes.subarray(0, 4).findIndex(isFirstByte));
  }
}

const isFirstByte = (byte: number): boolean => (byte & 0b1100_0000) !== 0b1000_0000;

export type OutputStream = 'stdout' | 'stderr';
/** `isCut`: the line was longer than the limit. */
export type OnLine = (stream: OutputStream, line: string, isCut: boolean) => void;

export interface OutputOptions {
  /** File to which both streams are appended, in the order of their arrival. */
  readonly logFile?: string | undefined;
  /** Number of bytes at the end of the output that are kept in memory. Defaults to 16 KiB. */
  readonly tailBytes?: number | undefined;
  /** Called with each line. Must not throw. */
  readonly onLine?: OnLine | undefined;
  /** Length at which lines are cut. Defaults to 8192. */
  readonly maxLineLength?: number | undefined;
  /** Called when the process closes a stream or ends. Must not throw. */
  readonly onStreamEnd?: ((stream: OutputStream) => void) | undefined;
}

const defaultTailBytes = 16 * 1024;
const logBufferBytes = 1024 * 1024;

/**
 * Reads the output of one process. Applies backpressure when the log file is slower, so memory stays bounded however
 * much the process prints.
 */
export class OutputCollector {
  readonly #tail: Tail;
  readonly #lines: Readonly<Record<OutputStream, LineSplitter>> | undefined;
  readonly #onStreamEnd: OutputOptions['onStreamEnd'];
  readonly #sources: Readable[] = [];
  #log: WriteStream | undefined;
  #caughtUp: Promise<void> | undefined;

  /** Opens the log file and creates its folder. Throws if that fails. */
  constructor(options: OutputOptions) {
    const { logFile, tailBytes = defaultTailBytes, onLine, maxLineLength } = options;
    this.#tail = new Tail(tailBytes);
    this.#onStreamEnd = options.onStreamEnd;
    this.#lines = onLine && {
      stdout: new LineSplitter((line, isCut) => onLine('stdout', line, isCut), maxLineLength),
      stderr: new LineSplitter((line, isCut) => onLine('stderr', line, isCut), maxLineLength),
    };
    if (logFile !== undefined) this.#log = this.#openLog(logFile);
  }

  read(stream: OutputStream, source: Readable): void {
    this.#sources.push(source);
    source.on('data', (chunk: Buffer) => this.#take(stream, chunk));
    source.once('end', () => {
      this.#lines?.[stream].end();
      this.#onStreamEnd?.(stream);
    });
  }

  /** Stops reading. Output that has already arrived is still collected, even if the log file is behind. */
  async detach(): Promise<void> {
    while (this.#caughtUp) await this.#caughtUp;
    // The first immediate may belong to the current turn of the event loop; the next turn drains the pipes.
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    while (this.#caughtUp) await this.#caughtUp;
    for (const source of this.#sources) source.destroy();
  }

  /** Flushes the log file and returns the end of the output. */
  async end(): Promise<string> {
    const log = this.#log;
    if (log) await new Promise<void>(resolve => log.once('close', resolve).end());
    this.#lines?.stdout.end();
    this.#lines?.stderr.end();
    return this.#tail.text();
  }

  #take(stream: OutputStream, chunk: Buffer): void {
    this.#tail.push(chunk);
    this.#lines?.[stream].push(chunk);
    if (this.#log?.write(chunk) === false) this.#pauseUntilDrained(this.#log);
  }

  #pauseUntilDrained(log: WriteStream): void {
    if (this.#caughtUp) return;
    for (const source of this.#sources) source.pause();
    this.#caughtUp = new Promise(resolve => {
      const resume = () => {
        log.off('drain', resume).off('close', resume);
        this.#caughtUp = undefined;
        for (const source of this.#sources) source.resume();
        resolve();
      };
      log.once('drain', resume).once('close', resume);
    });
  }

  #openLog(file: string): WriteStream {
    mkdirSync(dirname(file), { recursive: true });
    const log = createWriteStream(file, { fd: openSync(file, 'a'), highWaterMark: logBufferBytes });
    // A full disk must not stop the work. A line in the output says that the log ends here.
    log.on('error', error => {
      this.#log = undefined;
      this.#take(
        'stderr',
        Buffer.from(`\nreprise: the log ends here, because it cannot be written: ${error.message}\n`),
      );
    });
    return log;
  }
}
