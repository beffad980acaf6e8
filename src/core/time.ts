/** Source of time. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves at that moment; rejects when the signal is aborted. */
  waitUntil(epochMs: number, signal: AbortSignal): Promise<void>;
  /** Resolves after all callbacks that are already due have run. */
  endOfTurn(): Promise<void>;
}

/** Source of unique ids. */
export interface Ids {
  runId(): string;
  incarnation(): string;
  /** A UUID. */
  sessionId(): string;
  /** A short key that proves that an answer belongs to a session. */
  nextKey(): string;
}

/** A moment as stored in the history: ISO 8601 in UTC with milliseconds. */
export type Timestamp = string;

let last = { epochMs: 0, timestamp: new Date(0).toISOString() };

/** Keeps the last result: formatting costs more than the rest of a small step, and many events share a millisecond. */
export function toTimestamp(epochMs: number): Timestamp {
  if (epochMs !== last.epochMs) last = { epochMs, timestamp: new Date(epochMs).toISOString() };
  return last.timestamp;
}

export const toEpochMs = (timestamp: Timestamp): number => Date.parse(timestamp);

const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Milliseconds, or a string such as `250ms`, `30s`, `1.5h` or `1h30m`. */
export type Duration = number | string;

/** Returns milliseconds, or `undefined` if the value is not a duration. */
export function parseDuration(duration: Duration): number | undefined {
  if (typeof duration === 'number') return Number.isFinite(duration) && duration >= 0 ? duration : undefined;
  const text = duration.trim();
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) {
    total += Number(amount) * units[unit as keyof typeof units];
  }
  return total;
}

/** Formats a duration for display: `340ms`, `12.3s`, `2m 05s`, `1h 02m`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  if (ms < 60_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)}s`;
  const seconds = Math.floor(ms / 1000);
  const two = (value: number) => String(value).padStart(2, '0');
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${two(seconds % 60)}s`;
  return `${Math.floor(seconds / 3600)}h ${two(Math.floor(seconds / 60) % 60)}m`;
}
