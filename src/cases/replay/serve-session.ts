import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  type HostAnswer,
  type HostQuestion,
  noUsage,
  type Session,
  type SessionHost,
  type SessionResult,
  type TurnEnd,
} from '../../agents/index.ts';
import { RepriseError, toErrorData } from '../../core/index.ts';
import type { RecordedActivity, RecordedSession } from '../../engine/recording/index.ts';
import { applyDelta } from '../../git/delta/index.ts';
import type { Repository } from '../../git/index.ts';

interface VcrSessionOptions {
  /** Recording with local paths. */
  readonly recording: RecordedSession;
  readonly host: SessionHost;
  /** Applies the recorded changes to the folder. */
  readonly applyDelta: () => Promise<void>;
  /** Reports an error that must not be swallowed. */
  readonly onProblem: (error: RepriseError) => void;
}

/**
 * Replays a recorded session: the same events, questions and end. Applies the recorded changes to its folder on close,
 * because a turn may continue in the background while other steps work. A session that was interrupted runs until it is
 * interrupted again.
 */
export class VcrSession implements Session {
  readonly #options: VcrSessionOptions;
  readonly #cancelled: Promise<void>;
  readonly #onAbort = () => void this.cancel();
  #tellCancelled = () => {};
  #isCancelled = false;
  #at = 0;
  #question: HostQuestion | undefined;
  #ending: Promise<TurnEnd> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: VcrSessionOptions) {
    this.#options = options;
    this.#cancelled = new Promise(resolve => {
      this.#tellCancelled = resolve;
    });
    options.host.signal?.addEventListener('abort', this.#onAbort);
    if (options.host.signal?.aborted) void this.cancel();
  }

  async next(answer?: HostAnswer): Promise<TurnEnd> {
    if (this.#ending) return this.#ending;
    if (this.#question) {
      if (!answer) return { kind: 'question', question: this.#question };
      this.#take(this.#question, answer);
      this.#question = undefined;
    }
    this.#emit();
    if (this.#question) return { kind: 'question', question: this.#question };
    this.#ending ??= this.#end();
    return this.#ending;
  }

  /** A session that was not stopped while it was recorded finishes as recorded. */
  suspend(): void {
    if (this.#isInterrupted) void this.cancel();
  }

  async cancel(): Promise<void> {
    this.#isCancelled = true;
    this.#tellCancelled();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#options.host.signal?.removeEventListener('abort', this.#onAbort);
    await this.cancel();
    if (this.#isInterrupted) this.#ending ??= this.#end();
    if (!this.#ending) return;
    await this.#ending;
    await this.#options.applyDelta();
  }

  get #isInterrupted(): boolean {
    const { cut, why } = this.#options.recording;
    return cut !== undefined || why?.kind === 'suspend';
  }

  /** Emits events up to the next question or the end. */
  #emit(): void {
    const { recording, host } = this.#options;
    for (; this.#at < recording.lines.length; this.#at++) {
      const line = recording.lines[this.#at];
      if (line?.kind === 'question') {
        this.#question = line.question;
        this.#at++;
        return;
      }
      if (line?.kind !== 'event') continue;
      // An interrupted session emits `done` only after it is interrupted again.
      if (line.event.type === 'done' && this.#isInterrupted && !this.#isCancelled) return;
      host.onEvent(line.event);
    }
  }

  #take(question: HostQuestion, answer: HostAnswer): void {
    const { recording, onProblem } = this.#options;
    const line = recording.lines[this.#at];
    const recorded = line?.kind === 'answer' ? line.answer : undefined;
    if (isDeepStrictEqual(data(recorded), data(answer))) return;
    const pending = question.kind === 'permission' ? `permission for ${question.tool}` : 'limit';
    const error = new RepriseError(
      'REPLAY_DIVERGED',
      [
        `${recording.file}: the answer to a question of the session (${pending}) has changed`,
        `  recorded: ${recorded ? JSON.stringify(recorded) : 'no answer'}`,
        `  now:      ${JSON.stringify(answer)}`,
      ].join('\n'),
      { hint: 'record the case again' },
    );
    onProblem(error);
    throw error;
  }

  async #end(): Promise<TurnEnd> {
    const { recording } = this.#options;
    if (this.#isInterrupted) {
      await this.#cancelled;
      this.#emitRest();
    }
    const { why, nextKey = null } = recording;
    return { kind: 'end', result: this.#result(recording), nextKey, ...(why ? { cut: why } : {}) };
  }

  /** Emits all remaining events, including those after an unanswered question. */
  #emitRest(): void {
    do {
      this.#question = undefined;
      this.#emit();
    } while (this.#question);
  }

  /** Returns the recorded result, or `cancelled` if the session is cancelled now but was not when it was recorded. */
  #result({ result, why }: RecordedSession): SessionResult {
    if (!result) return { kind: 'cancelled', usage: noUsage, denials: [] };
    if (!this.#isCancelled || why || result.kind === 'cancelled') return result;
    if (this.#isInterrupted) return result;
    const { sessionId, usage, denials } = result;
    return { kind: 'cancelled', usage, denials, ...(sessionId === undefined ? {} : { sessionId }) };
  }
}

const data = (value: unknown): unknown =>
  value === undefined ? undefined : JSON.parse(JSON.stringify(value));

/** Outcome of applying recorded changes to a folder. */
export interface AppliedMark {
  readonly file: string;
  readonly kind: 'exact' | 'counterfactual' | 'inconclusive';
  readonly why?: string | undefined;
}

/** Applies the changes of a recording to a folder and returns the outcome. */
export type ApplyRecorded = (
  recording: RecordedActivity,
  folder: string,
) => Omit<AppliedMark, 'file'> | Promise<Omit<AppliedMark, 'file'>>;

export interface DeltaOptions {
  /** Returns `undefined` if the project is not in a repository. */
  readonly repository: () => Promise<Repository | undefined>;
  readonly blobs: (sha256: string) => Uint8Array | Promise<Uint8Array>;
  readonly applyDeltas: boolean;
  /** Replaces the default that changes folders on disk. Used when folders are modelled. */
  readonly applyInstead?: ApplyRecorded | undefined;
}

/** Applies the changes of recorded sessions and scripts to folders. */
export class Deltas {
  readonly #options: DeltaOptions;
  readonly marks: AppliedMark[] = [];

  constructor(options: DeltaOptions) {
    this.#options = options;
  }

  /** Applies the changes of a recording. Never rejects: a failure becomes an `inconclusive` mark. */
  async apply(recording: RecordedActivity, folder: string): Promise<void> {
    const { file, before, after } = recording;
    if (!this.#options.applyDeltas || !before || !after || isDeepStrictEqual(before, after)) return;
    const apply = this.#options.applyInstead ?? applyOnDisk(this.#options);
    try {
      this.marks.push({ file, ...(await apply(recording, folder)) });
    } catch (error) {
      this.marks.push({ file, kind: 'inconclusive', why: toErrorData(error).message });
    }
  }
}

const applyOnDisk =
  ({ repository: open, blobs }: DeltaOptions): ApplyRecorded =>
  async ({ before, after, pack: name }, folder) => {
    if (!before || !after) throw new Error('its changes were not recorded');
    const repository = await open();
    if (!repository) throw new Error('the project is not in a git repository');
    const pack = name === undefined ? emptyPack : await blobs(name);
    const applied = await applyDelta({ repository, folder: worktreeOf(folder), before, after, pack });
    return { kind: applied.kind, ...(applied.kind === 'inconclusive' ? { why: applied.why } : {}) };
  };

/** Pack without objects, for changes whose objects are all in the repository already. */
const emptyPack: Uint8Array = Buffer.from('PACK\0\0\0\x02\0\0\0\0', 'latin1');

/** Returns the root of the worktree that contains a folder, because scripts may run in a subfolder. */
function worktreeOf(folder: string): string {
  for (let at = folder; ; at = dirname(at)) {
    if (existsSync(join(at, '.git'))) return at;
    if (at === dirname(at)) return folder;
  }
}
