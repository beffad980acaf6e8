import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { JsonObject } from '../core/json.ts';
import type { EffectDefinition } from './effect.ts';
import { askedJson, outcomeJson } from './journal-entry.ts';
import type { Outcome } from './outcome.ts';
import type { Redactor } from './redact.ts';
import {
  type EntryPlace,
  entryName,
  type Phase,
  type TracedRequest,
  type Tracer,
  tapedArgs,
  tapedOutcome,
} from './trace.ts';

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
  /** The same, unless it was done a few milliseconds ago: for moments that come often. */
  flushNowAndThen(): void;
  close(): void;
}

export const journalFormat = 1;

/** A write costs as much as five entries, and a step may be over in less than a millisecond. */
const patienceMs = 5;

/**
 * Never throws and never waits for the disk: a kill of the process loses some milliseconds, a crash of the machine some
 * seconds. What goes wrong ends the journal, not the run.
 */
export const openJournal = (options: JournalOptions): Journal => new FileJournal(options);

class FileJournal implements Journal, Tracer {
  readonly tracer: Tracer = this;
  readonly #options: JournalOptions;
  #file: number | undefined;
  #lines = '';
  #timer: NodeJS.Timeout | undefined;
  #flushedAt = 0;
  /** Short effects that are under way: their line so far, or nothing if it has been written without an outcome. */
  readonly #granted = new Map<number, string>();

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
      this.#timer = setInterval(() => this.flush(), patienceMs).unref();
    });
  }

  granted(request: TracedRequest, place: EntryPlace): void {
    if (this.#file === undefined) return;
    this.#attempt(() => {
      const line = asked(request, place);
      if (place.phase === 'begin') this.#lines += `${line}}\n`;
      else this.#granted.set(place.n, line);
    });
  }

  settled(request: TracedRequest, place: EntryPlace, outcome: Outcome): void {
    if (this.#file === undefined) return;
    this.#attempt(() => {
      const answer = `${outcomeJson(tapedOutcome(request.effect, outcome))}}\n`;
      const line = this.#granted.get(place.n);
      if (place.phase === 'end') this.#lines += `${placed(request, place)}${answer}`;
      else if (line === undefined) this.#lines += `${asked(request, place)}${answer}`;
      else {
        this.#granted.delete(place.n);
        this.#lines += `${line === '' ? `{"n":${place.n}` : line}${answer}`;
      }
    });
  }

  note(line: JsonObject): void {
    if (this.#file === undefined) return;
    this.#attempt(() => {
      this.#lines += `{"note":${JSON.stringify(line)}}\n`;
    });
  }

  flushNowAndThen(): void {
    if (performance.now() - this.#flushedAt >= patienceMs) this.flush();
  }

  flush(): void {
    if (this.#file === undefined) return;
    this.#flushedAt = performance.now();
    this.#attempt(() => {
      for (const [n, line] of this.#granted) {
        if (line === '') continue;
        this.#granted.set(n, '');
        this.#lines += `${line}}\n`;
      }
      const lines = this.#lines;
      this.#lines = '';
      if (lines !== '') this.#write(this.#options.redactor.lines(lines));
    });
  }

  close(): void {
    this.flush();
    this.#end();
  }

  #write(text: string): void {
    if (this.#file === undefined) return;
    const written = writeSync(this.#file, text);
    // All of it, unless the disk is nearly full.
    if (written === Buffer.byteLength(text)) return;
    const bytes = Buffer.from(text);
    for (let done = written; done < bytes.length; ) done += writeSync(this.#file, bytes, done);
  }

  #attempt(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#end();
      const why = error instanceof Error ? error.message : String(error);
      const { file, onNotice } = this.#options;
      onNotice?.(`the journal ${file} ends here, so this run cannot be captured: ${why}`);
    }
  }

  #end(): void {
    const file = this.#file;
    clearInterval(this.#timer);
    this.#file = undefined;
    this.#lines = '';
    this.#granted.clear();
    if (file === undefined) return;
    try {
      closeSync(file);
    } catch {
      // What it says was reported when it was written.
    }
  }
}

const asked = (request: TracedRequest, place: EntryPlace): string =>
  `${placed(request, place)}${askedJson(request.keys, tapedArgs(request))}`;

const placed = ({ lane, effect }: TracedRequest, { n, i, phase }: EntryPlace): string =>
  `{"n":${n},"lane":${JSON.stringify(lane.name)},"i":${i},"op":${opJson(effect, phase)}`;

const opJson = (effect: EffectDefinition<unknown, unknown>, phase: Phase): string =>
  JSON.stringify(entryName(effect, phase));
