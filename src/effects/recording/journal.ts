import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { JsonObject } from '../../core/index.ts';
import type { EffectOutcome } from '../effect.ts';
import type { Redactor } from '../redact/redact.ts';
import type { EntryPlace, TracedRequest, Tracer } from '../tracer.ts';
import { JournalLines } from './journal-lines.ts';

export interface JournalOptions {
  /** Path of the journal. The file must not exist. */
  readonly file: string;
  readonly redactor: Redactor;
  /** Content of the first line, in addition to the version of the format. */
  readonly header: JsonObject;
  /** Called at most once, when the journal can no longer be written. */
  readonly onNotice?: ((notice: string) => void) | undefined;
}

/** Redacted lines of JSON about every effect, written while they happen. */
export interface Journal {
  readonly tracer: Tracer;
  /** Adds a line that is not an effect. */
  note(line: JsonObject): void;
  /** Hands everything so far to the operating system. Without this call, it is done after a few milliseconds. */
  flush(): void;
  /**
   * Flushes before an action that must not precede its journal line. If such actions follow each other within
   * milliseconds, they are flushed together, ten times a second.
   */
  flushUnlessMany(): void;
  close(): void;
}

export const journalFormat = 2;

/** Time between flushes. A flush has a fixed cost of a tenth of a millisecond, and a step may take less than one. */
const patienceMs = 5;

/** Time between flushes during a series of commits. A shorter time would hardly reduce the loss in a kill. */
const mostPatienceMs = 100;

/**
 * Number of buffered characters that forces a flush. Work that never yields to the event loop reaches no timer, and a
 * large buffer is expensive for the garbage collector to move.
 */
const mostWaiting = 1 << 16;

/**
 * Opens a journal. It never throws and never waits for the disk: a kill of the process loses a few milliseconds, or a
 * tenth of a second under load, and a crash of the machine a few seconds. An error ends the journal, not the run.
 */
export const openJournal = (options: JournalOptions): Journal => new FileJournal(options);

/** Redacts a file of JSON lines in place, with what the redactor knows by now. */
export function hideIn(file: string, redactor: Pick<Redactor, 'lines'>): void {
  const text = readFileSync(file, 'utf8');
  const hidden = redactor.lines(text);
  if (hidden !== text) writeFileSync(file, hidden);
}

class FileJournal implements Journal, Tracer {
  readonly tracer: Tracer = this;
  readonly #options: JournalOptions;
  #file: number | undefined;
  readonly #lines = new JournalLines();
  #timer: NodeJS.Timeout | undefined;
  #flushedAt = 0;
  /** Time of the last call to `flushUnlessMany`. */
  #oneOfManyAt = 0;

  constructor(options: JournalOptions) {
    this.#options = options;
    const { file, header, redactor } = options;
    this.#attempt(() => {
      mkdirSync(dirname(file), { recursive: true });
      this.#file = openSync(file, 'ax', 0o600);
      this.#write(
        `${redactor.line(JSON.stringify({ format: journalFormat, kind: 'journal', ...header }))}\n`,
      );
      redactor.onLearned(() => this.#hideAgain());
      // Unreferenced, because the code that ends the process closes the journal first.
      this.#timer = setInterval(() => this.#flushUnlessBusy(performance.now()), patienceMs).unref();
    });
  }

  granted(request: TracedRequest, position: EntryPlace): void {
    if (this.#file === undefined) return;
    try {
      this.#lines.granted(request, position);
    } catch (error) {
      this.#fail(error);
    }
  }

  settled(request: TracedRequest, position: EntryPlace, outcome: EffectOutcome): void {
    if (this.#file === undefined) return;
    try {
      this.#lines.settled(request, position, outcome);
      if (this.#lines.length > mostWaiting) this.flush();
    } catch (error) {
      this.#fail(error);
    }
  }

  note(line: JsonObject): void {
    if (this.#file === undefined) return;
    this.#attempt(() => this.#lines.note(line));
  }

  flushUnlessMany(): void {
    const now = performance.now();
    this.#flushUnlessBusy(now);
    this.#oneOfManyAt = now;
  }

  #flushUnlessBusy(now: number): void {
    if (now - this.#oneOfManyAt >= patienceMs || now - this.#flushedAt >= mostPatienceMs) this.flush();
  }

  flush(): void {
    if (this.#file === undefined) return;
    this.#flushedAt = performance.now();
    // The timer fires only if nothing else has flushed in the meantime.
    this.#timer?.refresh();
    this.#attempt(() => {
      const lines = this.#lines.take();
      if (lines !== '') this.#write(this.#options.redactor.lines(lines));
    });
  }

  close(): void {
    this.flush();
    this.#end();
  }

  /** Hides a secret that became known only now in the lines that were written before. */
  #hideAgain(): void {
    if (this.#file === undefined) return;
    this.flush();
    const { file, redactor } = this.#options;
    // In place, because the open descriptor appends to the same file.
    this.#attempt(() => hideIn(file, redactor));
  }

  #write(text: string): void {
    if (this.#file === undefined) return;
    const bytes = Buffer.from(text);
    // One iteration, unless the disk is nearly full.
    for (let done = 0; done < bytes.length; ) done += writeSync(this.#file, bytes, done);
  }

  #attempt(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    this.#end();
    const why = error instanceof Error ? error.message : String(error);
    const { file, onNotice } = this.#options;
    onNotice?.(`cannot write the journal ${file}, so this run cannot be captured: ${why}`);
  }

  #end(): void {
    const file = this.#file;
    clearInterval(this.#timer);
    this.#file = undefined;
    this.#lines.take();
    if (file === undefined) return;
    try {
      closeSync(file);
    } catch {
      // A write error has been reported already.
    }
  }
}
