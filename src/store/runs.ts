import { RepriseError } from '../core/errors.ts';
import type { HistoryEvent, NewEvent } from '../core/events.ts';
import { type EventParts, knownType, parseParts } from '../core/parse-event.ts';
import type { Timestamp } from '../core/time.ts';

/** An event as a store keeps it. A tuple, because a history is read as a whole and objects cost three times as much. */
export type EventRow = readonly [
  seq: number,
  at: string,
  type: string,
  step: string | null,
  worker: number | null,
  attempt: number | null,
  data: string,
];

/** Gives an event its place in the history. */
export const toEventRow = (event: NewEvent, seq: number, at: Timestamp): EventRow => [
  seq,
  at,
  event.type,
  event.step ?? null,
  event.worker ?? null,
  event.attempt ?? null,
  JSON.stringify(event.data),
];

/** The events that follow `afterSeq`, each validated. Throws HISTORY_INVALID at a gap, an unknown or a malformed row. */
export function toHistory(runId: string, afterSeq: number, rows: readonly EventRow[]): HistoryEvent[] {
  return rows.map((row, index) => {
    const seq = afterSeq + index + 1;
    if (row[0] !== seq)
      throw historyInvalid(runId, seq, `is missing: the next one in the store is ${row[0]}`);
    try {
      return eventOf(runId, row, 0, JSON.parse(row[6]));
    } catch (cause) {
      throw historyInvalid(runId, seq, `cannot be read: ${describe(cause)}`, cause);
    }
  });
}

const rowLength = 7;

/**
 * The same for rows that stand one after the other in one list, with data that were read already. Undefined if
 * one is not where it should be; throws HISTORY_INVALID if one is malformed.
 */
export function toHistoryOfList(
  runId: string,
  afterSeq: number,
  list: readonly unknown[],
): HistoryEvent[] | undefined {
  const events: HistoryEvent[] = [];
  for (let first = 0; first < list.length; first += rowLength) {
    if (list[first] !== afterSeq + events.length + 1) return undefined;
    events.push(eventOf(runId, list, first, list[first + 6]));
  }
  return events;
}

/** Fields by their index: to take a list apart by a pattern costs as much as all the rest. */
function eventOf(runId: string, row: readonly unknown[], first: number, data: unknown): HistoryEvent {
  const seq = row[first];
  const at = row[first + 1];
  const type = knownType(row[first + 2]) ?? row[first + 2];
  const step = row[first + 3];
  const worker = row[first + 4];
  const attempt = row[first + 5];
  // Nearly every event is like this, and an object that gets all of its fields at once is smaller and faster.
  if (step !== null && worker === null && attempt !== null)
    return parseParts({ seq, runId, at, type, step, attempt, data });
  const parts: Mutable<EventParts> = { seq, runId, at, type };
  if (step !== null) parts.step = step;
  if (worker !== null) parts.worker = worker;
  if (attempt !== null) parts.attempt = attempt;
  parts.data = data;
  return parseParts(parts);
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function historyInvalid(runId: string, seq: number, what: string, cause?: unknown): RepriseError {
  const hint = cause instanceof RepriseError ? cause.hint : undefined;
  return new RepriseError('HISTORY_INVALID', `event ${seq} of run ${runId} ${what}`, {
    hint: hint ?? 'the store is damaged: restore it from a backup, or start the workflow again',
    cause,
  });
}

const describe = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));
