import { closeSync, mkdirSync, openSync, readdirSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type {
  AgentEvent,
  HostAnswer,
  HostQuestion,
  SessionCut,
  SessionResult,
  TurnEnd,
} from '../../agents/index.ts';
import { atEndOfTurn } from '../../effects/index.ts';
import type { Redactor } from '../../effects/redact/index.ts';
import type { WorktreeState } from '../../git/delta/index.ts';
import type { OutputStream, ShellEnd } from '../../process/index.ts';
import { SessionEncoder, ShellEncoder } from './encode.ts';
import type { Activity, FolderReading } from './folder-states.ts';
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

/**
 * Common parts of all recordings: a header, an end that may be a result, and the state of the folder before and after.
 */
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

  before({ state, why }: FolderReading): void {
    this.#known = state;
    if (why !== undefined) this.file.add(incompleteLine(why));
    this.file.add(beforeLine(state));
  }

  after({ state, why }: FolderReading, before?: WorktreeState): void {
    if (why !== undefined) this.file.add(incompleteLine(why));
    const known = this.#known;
    const isNew = before !== undefined && JSON.stringify(before) !== JSON.stringify(known);
    this.file.add(afterLine(state, { known, ...(isNew ? { before } : {}) }));
    this.file.rest();
  }

  get isConcluded(): boolean {
    return this.#isConcluded;
  }

  /** Whether further events are omitted because the file is full. The first call says so in the file. */
  protected isCutShort(): boolean {
    if (!this.file.isFull) return false;
    if (!this.#isCutShort) this.file.add(incompleteLine('the recording is too long; the rest was omitted'));
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

/** The recording of a running session. */
export class SessionRecord extends ActivityRecord {
  readonly #encoder = new SessionEncoder();
  #asked: string | undefined;
  #result: SessionResult | undefined;
  /** Whether the lane was cancelled, so that the result, if any, was not used. */
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

  turn(turn: TurnEnd): void {
    if (turn.kind === 'question') this.#question(turn.question);
    else this.#result = turn.result;
  }

  /** Concludes a session whose result was used. `why` is the reason if the host cut the session short. */
  taken(why: SessionCut | undefined): void {
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

  /** Records a question once, even if it is repeated because it was not answered. */
  #question(question: HostQuestion): void {
    const text = JSON.stringify(question);
    if (text === this.#asked) return;
    this.#asked = text;
    this.file.add(this.#encoder.question(question));
  }
}

/** The recording of a running script. */
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
  /** File name until the recording has a result. */
  readonly name: string;
  readonly redactor: Pick<Redactor, 'line'>;
  /** Called once, with the first error. */
  readonly onProblem: (message: string) => void;
}

const maxCharacters = 8_000_000;

/**
 * A recording that is written while it happens, once per event-loop turn. It never throws, because a full disk must not
 * end the work.
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

  /** Whether the file is so long that nothing more is recorded. */
  get isFull(): boolean {
    return this.#size > maxCharacters;
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

  /** Writes pending lines and renames the file. */
  rename(name: string): void {
    this.flush();
    this.#attempt(() => {
      const { folder } = this.#options;
      renameSync(join(folder, this.#name), join(folder, name));
      this.#name = name;
    });
  }

  /** Writes pending lines and closes the file. Adding a line opens it again. */
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

/** The recordings of one role and task so far. */
interface ActivitySeries {
  opened: number;
  results: number;
  /** Number of interrupted recordings, by the number that a result would have had. */
  readonly cuts: Map<number, number>;
}

/** Numbers recordings. A result takes up a number; an interrupted recording does not. */
export class SeriesNumbers {
  readonly #folder: string;
  #series: Map<string, ActivitySeries> | undefined;

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

  /** Returns the number of a new result. */
  reached(of: Pick<RecordingId, 'role' | 'task'>): number {
    return this.#of(of).results++;
  }

  #of(of: Pick<RecordingId, 'role' | 'task'>): ActivitySeries {
    this.#series ??= seriesIn(this.#folder);
    const name = seriesName(of);
    const series = this.#series.get(name) ?? newSeries();
    this.#series.set(name, series);
    return series;
  }
}

const newSeries = (): ActivitySeries => ({ opened: 0, results: 0, cuts: new Map() });

/** Counts the existing recordings, which a resumed run continues. */
function seriesIn(folder: string): Map<string, ActivitySeries> {
  const found = new Map<string, ActivitySeries>();
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
