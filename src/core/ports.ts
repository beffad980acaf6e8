/** Time, as the outside world tells it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves when that moment has come; rejects when the signal is aborted. */
  waitUntil(epochMs: number, signal: AbortSignal): Promise<void>;
  /** Resolves when everything that can happen at once has happened. */
  endOfTurn(): Promise<void>;
}

/** Names that nobody else has. */
export interface Ids {
  runId(): string;
  incarnation(): string;
  /** A UUID. */
  sessionId(): string;
}
