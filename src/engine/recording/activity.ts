import type { AgentEvent, Cut, HostAnswer, HostQuestion, SessionResult, Turn } from '../../agents/session.ts';
import { atEndOfTurn } from '../../effects/system.ts';
import type { WorktreeState } from '../../git/delta/state.ts';
import type { OutputStream } from '../../process/output.ts';
import type { ShellEnd } from '../../process/shell-step.ts';
import { SessionEncoder } from './encode.ts';
import type { Activity, Look } from './folder-states.ts';
import type { RecordingFile } from './recording-file.ts';
import { type RecordingId, sessionFileName } from './session-file.ts';
import { afterLine, beforeLine, headerLine, incompleteLine, type RecordingStart } from './session-format.ts';
import { ShellEncoder } from './shell-encoder.ts';

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
