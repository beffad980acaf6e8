import { RepriseError } from '../core/errors.ts';
import type { HistoryEvent, NewEvent } from '../core/event.ts';
import { knownType, parseEvent } from '../core/parse-event.ts';
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
  let last: string | undefined;
  return rows.map((row, index) => {
    const [, at] = row;
    // Events of one commit share one text.
    last = at === last ? last : at;
    return toEvent(runId, { expectedSeq: afterSeq + index + 1, at: last, row });
  });
}

interface RowInPlace {
  readonly expectedSeq: number;
  readonly at: string;
  readonly row: EventRow;
}

function toEvent(runId: string, { expectedSeq, at, row }: RowInPlace): HistoryEvent {
  const [seq] = row;
  if (seq !== expectedSeq) {
    throw historyInvalid(runId, expectedSeq, `is missing: the next one in the store is ${seq}`);
  }
  try {
    return parseEvent(toRaw(runId, at, row));
  } catch (cause) {
    throw historyInvalid(runId, seq, `cannot be read: ${describe(cause)}`, cause);
  }
}

function toRaw(runId: string, at: string, row: EventRow): Readonly<Record<string, unknown>> {
  const [seq, , text, step, worker, attempt, json] = row;
  const type = knownType(text) ?? text;
  const data: unknown = JSON.parse(json);
  // Nearly every event is like this, and an object that gets all of its fields at once is smaller and faster.
  if (step !== null && worker === null && attempt !== null)
    return { seq, runId, at, type, step, attempt, data };
  const raw: Record<string, unknown> = { seq, runId, at, type };
  if (step !== null) raw['step'] = step;
  if (worker !== null) raw['worker'] = worker;
  if (attempt !== null) raw['attempt'] = attempt;
  raw['data'] = data;
  return raw;
}

function historyInvalid(runId: string, seq: number, what: string, cause?: unknown): RepriseError {
  const hint = cause instanceof RepriseError ? cause.hint : undefined;
  return new RepriseError('HISTORY_INVALID', `event ${seq} of run ${runId} ${what}`, {
    hint: hint ?? 'the store is damaged: restore it from a backup, or start the workflow again',
    cause,
  });
}

const describe = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));
