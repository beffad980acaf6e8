import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { unitFileName } from '../engine/log-files.ts';
import { LineSplitter } from '../process/output.ts';

/** One file of what a step or worker printed. */
export interface LogFile {
  readonly file: string;
  /** `fix`, `fix:1`. */
  readonly unit: string;
  readonly attempt: number;
  /** What it is beside the work itself, such as `check-1`. */
  readonly what?: string | undefined;
}

/** The logs of some steps and workers, in their order; each in the order in which its files came to be. */
export function logFilesOf(folder: string, units: readonly string[]): readonly LogFile[] {
  const names = namesIn(folder);
  return units.flatMap(unit => {
    const start = `${unitFileName({ step: unit })}.`;
    const files = names.flatMap((name): LogFile[] => {
      const rest = name.startsWith(start) ? /^(\d+)(?:\.(.+))?\.log$/.exec(name.slice(start.length)) : null;
      if (!rest) return [];
      return [{ file: join(folder, name), unit, attempt: Number(rest[1]), what: rest[2] }];
    });
    return files.toSorted((a, b) => a.attempt - b.attempt || bornAt(a.file) - bornAt(b.file));
  });
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

const bornAt = (file: string): number => statSync(file, { throwIfNoEntry: false })?.birthtimeMs ?? 0;

const longestLine = 1024 * 1024;
const chunkBytes = 64 * 1024;

/** Reads on in a file that somebody else may be writing to. */
export class LogReader {
  readonly #file: string;
  readonly #lines: LineSplitter;
  #offset = 0;

  constructor(file: string, onLine: (line: string) => void) {
    this.#file = file;
    this.#lines = new LineSplitter(onLine, longestLine);
  }

  /** Hands on the lines that are whole since the last time, and lets them be taken in before it reads on. */
  async read(takenIn: () => Promise<void>): Promise<void> {
    let descriptor: number;
    try {
      descriptor = openSync(this.#file, 'r');
    } catch {
      return;
    }
    try {
      const chunk = Buffer.alloc(chunkBytes);
      for (;;) {
        const length = readSync(descriptor, chunk, 0, chunkBytes, this.#offset);
        if (length === 0) return;
        this.#offset += length;
        this.#lines.push(chunk.subarray(0, length));
        await takenIn();
      }
    } finally {
      closeSync(descriptor);
    }
  }

  /** Hands on what has no line break at its end. */
  end(): void {
    this.#lines.end();
  }
}
