/** A moment as history keeps it: ISO 8601 in UTC with milliseconds. */
export type Timestamp = string;

export const toTimestamp = (epochMs: number): Timestamp => new Date(epochMs).toISOString();

export const toEpochMs = (timestamp: Timestamp): number => Date.parse(timestamp);
