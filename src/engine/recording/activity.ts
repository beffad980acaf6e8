import { closeSync, mkdirSync, openSync, readdirSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentEvent, Cut, HostAnswer, HostQuestion, SessionResult, Turn } from '../../agents/session.ts';
import type { Redactor } from '../../effects/redact/redact.ts';
import { atEndOfTurn } from '../../effects/system.ts';
import type { WorktreeState } from '../../git/delta/state.ts';
import type { OutputStream } from '../../process/output.ts';
import type { ShellEnd } from '../../process/shell-step.ts';
import { SessionEncoder, ShellEncoder } from './encode.ts';
import type { Activity, Look } from './folder-states.ts';
import {
  afterLine,
  beforeLine,
  headerLine,
  incompleteLine,
  type RecordingId,
  type RecordingStart,
  seriesName,
  sessionFileName,
} from './session-file.ts';

/** What all recordings have: a beginning, an end that counts or does not, and the folder before and after. */
abstract class ActivityRecord implements Activity {
  protected readonly file: RecordingFile;
  readonly #id: RecordingId;
  readonly #takeNumber: () => number;
  #known: WorktreeState | null = null;
  #isConcluded = false;
  #isCutShort = false;

  constructor(file: RecordingFile, start: RecordingStart, takeNumber: () => number) {
    this.file = file;
    this.#id = start;
    this.#takeNumber = takeNumber;
    file.add(headerLine(start));
  }

  before({ state, why }: Look): void {
    this.#known = state;
    if (why !== undefined) this.file.add(incompleteLine(why));
    this.file.add(beforeLine(state));
  }

  after({ state, why }: Look, before?: WorktreeState): void {
    if (why !== undefined) this.file.add(incompleteLine(why));
    const known = this.#known;
    const isNew = before !== undefined && JSON.stringify(before) !== JSON.stringify(known);
    this.file.add(afterLine(state, { known, ...(isNew ? { before } : {}) }));
    this.file.rest();
  }

  get isConcluded(): boolean {
    return this.#isConcluded;
  }

  /** Whether what happens is left out from now on; the file says so. */
  protected isCutShort(): boolean {
    if (!this.file.isFull) return false;
    if (!this.#isCutShort) this.file.add(incompleteLine('it is too long: the rest of it was left out'));
    this.#isCutShort = true;
    return true;
  }

  protected conclude(lines: readonly object[], isResult: boolean): void {
    if (this.#isConcluded) return;
    this.#isConcluded = true;
    for (const line of lines) this.file.add(line);
    if (isResult) {
      const { role, task } = this.#id;
      const n = this.#takeNumber();
      if (n !== this.#id.n) this.file.add({ n });
      this.file.rename(sessionFileName({ role, task, n }));
    }
    this.file.rest();
  }
}

/** A session while it goes on. */
export class SessionRecord extends ActivityRecord {
  readonly #encoder = new SessionEncoder();
  #asked: string | undefined;
  #result: SessionResult | undefined;
  /** The lane was cancelled, so that nobody took the result if there was one. */
  #isCancelled = false;

  event(event: AgentEvent): void {
    if (this.isConcluded || this.isCutShort()) return;
    const line = this.#encoder.event(event);
    if (line) this.file.add(line);
  }

  answer(answer: HostAnswer): void {
    this.#asked = undefined;
    this.file.add(this.#encoder.answer(answer));
  }

  turn(turn: Turn): void {
    if (turn.kind === 'question') this.#question(turn.question);
    else this.#result = turn.result;
  }

  /** The result was taken, and this is why the host had ended the session, if it had. */
  taken(why: Cut | undefined): void {
    if (this.#result) this.conclude(this.#encoder.end(this.#result, { why, interrupted: false }), true);
  }

  cancelled(): void {
    this.#isCancelled = true;
  }

  closed(): void {
    const result = this.#result;
    const interrupted = this.#isCancelled || result === undefined || result.kind === 'cancelled';
    this.conclude(result ? this.#encoder.end(result, { interrupted }) : [], !interrupted);
  }

  /** A question that comes again because nobody has answered it is the same. */
  #question(question: HostQuestion): void {
    const text = JSON.stringify(question);
    if (text === this.#asked) return;
    this.#asked = text;
    this.file.add(this.#encoder.question(question));
  }
}

/** A script while it runs. */
export class ShellRecord extends ActivityRecord {
  readonly #encoder = new ShellEncoder();
  #stream: OutputStream = 'stdout';
  #lines: string[] = [];
  #isArmed = false;

  line(stream: OutputStream, line: string): void {
    if (this.isCutShort()) return;
    if (stream !== this.#stream) this.#flush();
    this.#stream = stream;
    this.#lines.push(line);
    if (this.#isArmed) return;
    this.#isArmed = true;
    atEndOfTurn(() => {
      this.#isArmed = false;
      this.#flush();
    });
  }

  ended(end: ShellEnd | undefined, { interrupted }: { readonly interrupted: boolean }): void {
    if (this.isConcluded) return;
    this.#flush();
    const line = end && { ...this.#encoder.end(end), ...(interrupted ? { interrupted: true } : {}) };
    this.conclude(line ? [line] : [], !interrupted);
  }

  #flush(): void {
    if (this.#lines.length === 0 || this.isConcluded) return;
    this.file.add(this.#encoder.output(this.#stream, this.#lines));
    this.#lines = [];
  }
}

interface RecordingFileOptions {
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

/** What has been recorded of one role and task. */
interface Series {
  opened: number;
  results: number;
  /** By the number that they would have had. */
  readonly cuts: Map<number, number>;
}

/** Numbers for recordings: a number is used up by a result, and not by a beginning. */
export class SeriesNumbers {
  readonly #folder: string;
  #series: Map<string, Series> | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  open(of: Pick<RecordingId, 'role' | 'task'>): Required<RecordingId> & { readonly order: number } {
    const series = this.#of(of);
    const n = series.results;
    const cut = series.cuts.get(n) ?? 0;
    series.cuts.set(n, cut + 1);
    return { role: of.role, task: of.task, n, cut, order: series.opened++ };
  }

  /** The number of a result. */
  reached(of: Pick<RecordingId, 'role' | 'task'>): number {
    return this.#of(of).results++;
  }

  #of(of: Pick<RecordingId, 'role' | 'task'>): Series {
    this.#series ??= seriesIn(this.#folder);
    const name = seriesName(of);
    const series = this.#series.get(name) ?? newSeries();
    this.#series.set(name, series);
    return series;
  }
}

const newSeries = (): Series => ({ opened: 0, results: 0, cuts: new Map() });

/** A run that is resumed goes on with the recordings that are there. */
function seriesIn(folder: string): Map<string, Series> {
  const found = new Map<string, Series>();
  for (const file of namesIn(folder)) {
    const [, name, number, cut] = /^(.+)\.(\d+)(?:\.cut(\d+))?\.jsonl$/.exec(file) ?? [];
    if (name === undefined) continue;
    const series = found.get(name) ?? newSeries();
    found.set(name, series);
    const n = Number(number);
    series.opened++;
    if (cut === undefined) series.results = Math.max(series.results, n + 1);
    else series.cuts.set(n, Math.max(series.cuts.get(n) ?? 0, Number(cut) + 1));
  }
  return found;
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
