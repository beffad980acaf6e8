/** A moment as history keeps it: ISO 8601 in UTC with milliseconds. */
export type Timestamp = string;

let last = { epochMs: 0, timestamp: new Date(0).toISOString() };

/** Formatting costs more than the rest of a small step, and many events share a millisecond. */
export function toTimestamp(epochMs: number): Timestamp {
  if (epochMs !== last.epochMs) last = { epochMs, timestamp: new Date(epochMs).toISOString() };
  return last.timestamp;
}

export const toEpochMs = (timestamp: Timestamp): number => Date.parse(timestamp);
