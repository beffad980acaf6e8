import { createWriteStream, mkdirSync, openSync, type WriteStream } from 'node:fs';
import { dirname } from 'node:path';
import type { Readable } from 'node:stream';
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

export type OutputStream = 'stdout' | 'stderr';
/** `isCut`: it was longer than is kept in memory. */
export type OnLine = (stream: OutputStream, line: string, isCut: boolean) => void;

export interface OutputOptions {
  /** Both streams are appended to it, in the order in which they come in. */
  readonly logFile?: string | undefined;
  /** How much of the end of the output is kept in memory. */
  readonly tailBytes?: number | undefined;
  /** Must not throw. */
  readonly onLine?: OnLine | undefined;
  /** Longer lines lose their end. */
  readonly maxLineLength?: number | undefined;
  /** A stream was closed, by the process itself or because it ended. Must not throw. */
  readonly onStreamEnd?: ((stream: OutputStream) => void) | undefined;
}

const defaultTailBytes = 16 * 1024;
const logBufferBytes = 1024 * 1024;

/**
 * Reads the output of one process and holds the process back when the log file cannot follow, so that memory stays
 * bounded however much it prints.
 */
export class OutputCollector {
  readonly #tail: Tail;
  readonly #lines: Readonly<Record<OutputStream, LineSplitter>> | undefined;
  readonly #onStreamEnd: OutputOptions['onStreamEnd'];
  readonly #sources: Readable[] = [];
  #log: WriteStream | undefined;
  #caughtUp: Promise<void> | undefined;

  /** Opens the log file, with its folder; throws if that is impossible. */
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

  /** Reads no more. What has already come in is still taken, however far the log file is behind. */
  async detach(): Promise<void> {
    while (this.#caughtUp) await this.#caughtUp;
    // The first immediate may still belong to this turn of the event loop; the turn after it reads the pipes empty.
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    while (this.#caughtUp) await this.#caughtUp;
    for (const source of this.#sources) source.destroy();
  }

  /** The end of the output, once everything is in the log file. */
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
    if (this.#log?.write(chunk) === false) this.#holdBack(this.#log);
  }

  #holdBack(log: WriteStream): void {
    if (this.#caughtUp) return;
    for (const source of this.#sources) source.pause();
    this.#caughtUp = new Promise(resolve => {
      const goOn = () => {
        log.off('drain', goOn).off('close', goOn);
        this.#caughtUp = undefined;
        for (const source of this.#sources) source.resume();
        resolve();
      };
      log.once('drain', goOn).once('close', goOn);
    });
  }

  #openLog(file: string): WriteStream {
    mkdirSync(dirname(file), { recursive: true });
    const log = createWriteStream(file, { fd: openSync(file, 'a'), highWaterMark: logBufferBytes });
    // A full disk must not end the work; the output itself says that the log stops here.
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
