import type { Timestamp } from '../../core/time.ts';
import { type InboxRow, toInboxEntry } from '../inbox-message.ts';
import type { InboxEntry, InboxMessage } from '../port.ts';
import type { Database } from './connection.ts';

/** Messages from processes that do not own the run. */
export function inboxTable(db: Database) {
  const insert = db.prepare(
    'INSERT INTO inbox (run_id, at, message) SELECT run_id, ?, ? FROM runs WHERE run_id = ?',
  );
  const select = db.prepare('SELECT id, at, message FROM inbox WHERE run_id = ? ORDER BY id');
  const remove = db.prepare('DELETE FROM inbox WHERE id = ? AND run_id = ?');

  return {
    /** `false` if there is no such run. */
    insert: (runId: string, message: InboxMessage, at: Timestamp): boolean =>
      insert.run(at, JSON.stringify(message), runId).changes === 1,

    /** Throws HISTORY_INVALID. */
    read(runId: string): InboxEntry[] {
      const rows: InboxRow[] = select.all(runId);
      return rows.map(row => toInboxEntry(runId, row));
    },

    remove(runId: string, ids: readonly number[]): void {
      for (const id of ids) remove.run(id, runId);
    },
  };
}
