import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { JsonObject } from '../../core/json.ts';
import type { Outcome } from '../effect.ts';
import type { Redactor } from '../redact/redact.ts';
import type { EntryPlace, TracedRequest, Tracer } from '../tracer.ts';
import { JournalLines } from './journal-lines.ts';

export interface JournalOptions {
  /** Must not exist. */
  readonly file: string;
  readonly redactor: Redactor;
  /** Stands in the first line, beside the version of the format. */
  readonly header: JsonObject;
  /** Told at most once, when the journal cannot be written any more. */
  readonly onNotice?: ((notice: string) => void) | undefined;
}

/** Lines of JSON that say what crossed the boundary, redacted, written while it happens. */
export interface Journal {
  readonly tracer: Tracer;
  /** A line of another kind. */
  note(line: JsonObject): void;
  /** Hands all that happened so far to the operating system; otherwise that is done after some milliseconds. */
  flush(): void;
  /**
   * The same, for what comes often and should not be done before the journal says so. When it follows upon another of its
   * kind within milliseconds, it is one of many, and they are flushed together, ten times a second.
   */
  flushUnlessMany(): void;
  close(): void;
}

export const journalFormat = 2;

/** A flush takes a tenth of a millisecond beside its entries, and a step may be over in less than one. */
const patienceMs = 5;

/** While there is one commit after another. What is lost with a kill then would mostly be lost with a shorter time too. */
const mostPatienceMs = 100;

/**
 * In characters. What happens without the event loop ever turning reaches no timer. And what waits is not garbage yet:
 * the more there is of it, the more the collector has to move.
 */
const mostWaiting = 1 << 16;

/**
 * Never throws and never waits for the disk: a kill of the process loses some milliseconds, or a tenth of a second while
 * much happens, and a crash of the machine some seconds. What goes wrong ends the journal, not the run.
 */
export const openJournal = (options: JournalOptions): Journal => new FileJournal(options);

class FileJournal implements Journal, Tracer {
  readonly tracer: Tracer = this;
  readonly #options: JournalOptions;
  #file: number | undefined;
  readonly #lines = new JournalLines();
  #timer: NodeJS.Timeout | undefined;
  #flushedAt = 0;
  /** When the last of those came that may be many. */
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
      // Whoever ends the process closes the journal first.
      this.#timer = setInterval(() => this.#flushUnlessBusy(performance.now()), patienceMs).unref();
    });
  }

  granted(request: TracedRequest, place: EntryPlace): void {
    if (this.#file === undefined) return;
    try {
      this.#lines.granted(request, place);
    } catch (error) {
      this.#fail(error);
    }
  }

  settled(request: TracedRequest, place: EntryPlace, outcome: Outcome): void {
    if (this.#file === undefined) return;
    try {
      this.#lines.settled(request, place, outcome);
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
    // So that it fires only when nobody else has flushed for as long.
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

  #write(text: string): void {
    if (this.#file === undefined) return;
    const bytes = Buffer.from(text);
    // Once, unless the disk is nearly full.
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
    onNotice?.(`the journal ${file} ends here, so this run cannot be captured: ${why}`);
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
      // What it says was reported when it was written.
    }
  }
}
