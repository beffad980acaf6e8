import type { ChildRecord } from '../port.ts';
import type { Database } from './connection.ts';

interface ProcessRow {
  readonly pid: number;
  readonly process_start: string;
  readonly step: string;
}

/** Child processes that the next owner has to end if this one dies. */
export function processesTable(db: Database) {
  // A pid that is used again belongs to the younger process: the older one has ended.
  const put = db.prepare(
    'INSERT OR REPLACE INTO processes (run_id, pid, process_start, step) VALUES (?, ?, ?, ?)',
  );
  const remove = db.prepare('DELETE FROM processes WHERE run_id = ? AND pid = ?');
  const select = db.prepare('SELECT pid, process_start, step FROM processes WHERE run_id = ? ORDER BY pid');

  return {
    put(runId: string, { pid, processStart, step }: ChildRecord): void {
      put.run(runId, pid, processStart, step);
    },

    remove(runId: string, pid: number): void {
      remove.run(runId, pid);
    },

    read(runId: string): ChildRecord[] {
      const rows: ProcessRow[] = select.all(runId);
      return rows.map(row => ({ pid: row.pid, processStart: row.process_start, step: row.step }));
    },
  };
}
