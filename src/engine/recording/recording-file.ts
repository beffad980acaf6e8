import { closeSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Redactor } from '../../effects/redact/redact.ts';
import { atEndOfTurn } from '../../effects/system.ts';

export interface RecordingFileOptions {
  readonly folder: string;
  /** What it is called until it reaches a result. */
  readonly name: string;
  readonly redactor: Pick<Redactor, 'line'>;
  /** Told once, of the first thing that went wrong. */
  readonly onProblem: (message: string) => void;
}

const mostCharacters = 8_000_000;

/**
 * A file to which lines are added while things happen, all of an event-loop turn at once. It never throws: a disk that
 * is full must not end the work.
 */
export class RecordingFile {
  readonly #options: RecordingFileOptions;
  #name: string;
  #descriptor: number | undefined;
  #waiting: string[] = [];
  #isArmed = false;
  #isBroken = false;
  #size = 0;

  constructor(options: RecordingFileOptions) {
    this.#options = options;
    this.#name = options.name;
  }

  /** So much was said that no more of it is kept: nobody replays a flood. */
  get isFull(): boolean {
    return this.#size > mostCharacters;
  }

  add(line: object): void {
    this.#attempt(() => {
      const text = JSON.stringify(line);
      this.#size += text.length;
      this.#waiting.push(text);
    });
    if (this.#isArmed || this.#isBroken) return;
    this.#isArmed = true;
    atEndOfTurn(() => {
      this.#isArmed = false;
      this.flush();
    });
  }

  flush(): void {
    if (this.#waiting.length === 0) return;
    const lines = this.#waiting;
    this.#waiting = [];
    this.#attempt(() => {
      const text = lines.map(line => `${this.#options.redactor.line(line)}\n`).join('');
      this.#descriptor ??= this.#open();
      writeSync(this.#descriptor, text);
    });
  }

  /** Gives it another name, with all that was added. */
  rename(name: string): void {
    this.flush();
    this.#attempt(() => {
      const { folder } = this.#options;
      renameSync(join(folder, this.#name), join(folder, name));
      this.#name = name;
    });
  }

  /** It can still be added to. */
  rest(): void {
    this.flush();
    if (this.#descriptor === undefined) return;
    const descriptor = this.#descriptor;
    this.#descriptor = undefined;
    this.#attempt(() => closeSync(descriptor));
  }

  #open(): number {
    const { folder } = this.#options;
    mkdirSync(folder, { recursive: true });
    return openSync(join(folder, this.#name), 'a');
  }

  #attempt(action: () => unknown): void {
    if (this.#isBroken) return;
    try {
      action();
    } catch (error) {
      this.#isBroken = true;
      this.#options.onProblem(error instanceof Error ? error.message : String(error));
    }
  }
}
