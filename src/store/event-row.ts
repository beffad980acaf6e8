import { RepriseError } from '../core/errors.ts';
import type { HistoryEvent, NewEvent } from '../core/event.ts';
import { knownType, parseEvent } from '../core/parse-event.ts';
import type { Timestamp } from '../core/time.ts';

/**
 * An event as a store keeps it, its data as JSON unless `Data` says that they were read already. A tuple, because a
 * history is read as a whole and objects cost three times as much.
 */
export type EventRow<Data = string> = readonly [
  seq: number,
  at: string,
  type: string,
  step: string | null,
  worker: number | null,
  attempt: number | null,
  data: Data,
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
export const toHistory = (runId: string, afterSeq: number, rows: readonly EventRow[]): HistoryEvent[] =>
  eventsOf(runId, afterSeq, rows, JSON.parse);

/** The same for rows whose data were read already. */
export const toHistoryOfData = (
  runId: string,
  afterSeq: number,
  rows: readonly EventRow<unknown>[],
): HistoryEvent[] => eventsOf(runId, afterSeq, rows, asItIs);

const asItIs = (data: unknown): unknown => data;

function eventsOf<Data>(
  runId: string,
  afterSeq: number,
  rows: readonly EventRow<Data>[],
  readData: (data: Data) => unknown,
): HistoryEvent[] {
  let last: string | undefined;
  return rows.map((row, index) => {
    const seq = row[0];
    const at = row[1];
    if (seq !== afterSeq + index + 1) {
      throw historyInvalid(runId, afterSeq + index + 1, `is missing: the next one in the store is ${seq}`);
    }
    // Events of one commit share one text.
    last = at === last ? last : at;
    try {
      return parseEvent(toRaw(runId, last, row, readData(row[6])));
    } catch (cause) {
      throw historyInvalid(runId, seq, `cannot be read: ${describe(cause)}`, cause);
    }
  });
}

/** Fields by their index: to take a list apart by a pattern costs as much as all the rest. */
function toRaw(
  runId: string,
  at: string,
  row: EventRow<unknown>,
  data: unknown,
): Readonly<Record<string, unknown>> {
  const seq = row[0];
  const type = knownType(row[2]) ?? row[2];
  const step = row[3];
  const worker = row[4];
  const attempt = row[5];
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
