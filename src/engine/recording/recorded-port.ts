import type { HostAnswer, Session, Turn } from '../../agents/session.ts';
import type { SessionRecord } from './activity.ts';

export interface RecordedPortOptions {
  readonly session: Session;
  readonly record: SessionRecord;
  /** Before anything happens in the folder. */
  readonly onBegin: () => Promise<void>;
  readonly onClosed: () => Promise<void>;
}

/** A session that is recorded while it is held. */
export class RecordedPort implements Session {
  readonly #options: RecordedPortOptions;
  #beginning: Promise<void> | undefined;
  #pending: Promise<unknown> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: RecordedPortOptions) {
    this.#options = options;
  }

  next(answer?: HostAnswer): Promise<Turn> {
    const turn = this.#next(answer);
    this.#pending = turn.catch(() => {});
    return turn;
  }

  cancel(): Promise<void> {
    return this.#options.session.cancel();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #next(answer: HostAnswer | undefined): Promise<Turn> {
    const { session, record, onBegin } = this.#options;
    this.#beginning ??= onBegin();
    await this.#beginning;
    if (answer) record.answer(answer);
    const turn = await session.next(answer);
    record.turn(turn);
    return turn;
  }

  async #close(): Promise<void> {
    const { session, record, onClosed } = this.#options;
    await this.#beginning;
    await session.close();
    await this.#pending;
    record.closed();
    await onClosed();
  }
}
