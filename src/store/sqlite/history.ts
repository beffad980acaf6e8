import type { HistoryEvent, NewEvent } from '../../core/event.ts';
import type { Timestamp } from '../../core/time.ts';
import { type EventRow, toEventRow, toHistory } from '../event-row.ts';
import type { Database } from './connection.ts';

interface Continuation {
  readonly runId: string;
  readonly afterSeq: number;
  readonly at: Timestamp;
  readonly events: readonly NewEvent[];
}

/** All values of one query stay alive until it is done, and weigh on every garbage collection meanwhile. */
const rowsAtOnce = 500;

/** The events of all runs. */
export function historyTable(db: Database) {
  const insert = db.prepare(
    'INSERT INTO events (run_id, seq, at, type, step, worker, attempt, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  );
  const after = db.prepare(
    'SELECT seq, at, type, step, worker, attempt, data FROM events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?',
  );
  after.setReturnArrays(true);

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
        const lastSeq = afterSeq + events.length;
        const rows: EventRow[] = after.all(runId, lastSeq, rowsAtOnce);
        events.push(...toHistory(runId, lastSeq, rows));
        if (rows.length < rowsAtOnce) return events;
      }
    },
  };
}
