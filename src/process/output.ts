import { createWriteStream, mkdirSync, openSync, type WriteStream } from 'node:fs';
import { dirname } from 'node:path';
import type { Readable } from 'node:stream';
import { LineSplitter } from './line-splitter.ts';
import { Tail } from './tail.ts';

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
  async letGo(): Promise<void> {
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
