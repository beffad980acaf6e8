import type { HistoryEvent, NewEvent } from '../../core/events.ts';
import type { Timestamp } from '../../core/time.ts';
import { type EventRow, toEventRow, toHistory, toHistoryOfList } from '../runs.ts';
import type { Database } from './connection.ts';

interface Continuation {
  readonly runId: string;
  readonly afterSeq: number;
  readonly at: Timestamp;
  readonly events: readonly NewEvent[];
}

interface JoinedRows {
  /** Null if there are none. */
  readonly list: string | null;
  readonly total: number;
}

/** All values of one query stay alive until it is done, and weigh on every garbage collection meanwhile. */
const rowsAtOnce = 500;

/** The events of all runs. */
export function historyTable(db: Database) {
  const insert = db.prepare(
    'INSERT INTO events (run_id, seq, at, type, step, worker, attempt, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  );
  const selectAfter =
    'SELECT seq, at, type, step, worker, attempt, data FROM events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?';
  const after = db.prepare(selectAfter);
  after.setReturnArrays(true);
  // One text for many events costs less than a value for each field of each. `data` goes into it as it is: if it is not
  // one JSON value, the numbers of the events after it are not where they should be, or an event is missing.
  const listAfter = db.prepare(
    `SELECT '[' || group_concat(concat_ws(',',
      seq, json_quote(at), json_quote(type), json_quote(step), ifnull(worker, 'null'), ifnull(attempt, 'null'), data
    )) || ']' AS list, count(*) AS total FROM (${selectAfter})`,
  );

  function readBatch(runId: string, afterSeq: number): HistoryEvent[] {
    try {
      const { list, total }: JoinedRows = listAfter.get(runId, afterSeq, rowsAtOnce);
      const events = toHistoryOfList(runId, afterSeq, list === null ? [] : JSON.parse(list));
      if (events?.length === total) return events;
    } catch {
      // Row by row it shows which one is damaged, and what is only too much for one text can be read.
    }
    const rows: EventRow[] = after.all(runId, afterSeq, rowsAtOnce);
    return toHistory(runId, afterSeq, rows);
  }

  return {
    append({ runId, afterSeq, at, events }: Continuation): void {
      let seq = afterSeq;
      for (const event of events) {
        seq += 1;
        insert.run(runId, ...toEventRow(event, seq, at));
      }
    },

    /** Throws HISTORY_INVALID. */
    read(runId: string, afterSeq: number): HistoryEvent[] {
      const events: HistoryEvent[] = [];
      for (;;) {
        const batch = readBatch(runId, afterSeq + events.length);
        for (const event of batch) events.push(event);
        if (batch.length < rowsAtOnce) return events;
      }
    },
  };
}
