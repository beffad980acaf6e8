import { byStart, type WorkerRecord, type WorkerRegistry, type WorkerState } from '../workers.ts';
import type { Database, Transactions } from './connection.ts';

interface WorkerRow {
  readonly incarnation: string;
  readonly host: string;
  readonly pid: number;
  readonly process_start: string;
  readonly name: string;
  readonly branch: string;
  readonly started_at: string;
  readonly beat_at: string;
  readonly state: WorkerState;
  readonly task: string | null;
  readonly agent: string | null;
  readonly run_id: string | null;
  readonly note: string | null;
  readonly cost_usd: number | null;
}

/** The workers of a project. */
export function workersOn(db: Database, { read, write }: Transactions) {
  const put = db.prepare(
    `INSERT OR REPLACE INTO workers
       (incarnation, host, pid, process_start, name, branch, started_at, beat_at, state, task, agent, run_id, note, cost_usd)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const remove = db.prepare('DELETE FROM workers WHERE incarnation = ?');
  const all = db.prepare('SELECT * FROM workers');

  const list = (): readonly WorkerRecord[] =>
    read(() => {
      const rows: WorkerRow[] = all.all();
      return rows.map(toWorker).sort(byStart);
    });

  const registry: WorkerRegistry = {
    put: async worker =>
      write(() => {
        const { incarnation, host, pid, processStart, name, branch, startedAt, beatAt, state } = worker;
        const { task = null, agent = null, runId = null, note = null, costUsd } = worker;
        const self = [incarnation, host, pid, processStart, name, branch, startedAt];
        put.run(...self, beatAt, state, task, agent, runId, note, costUsd);
      }),

    remove: async incarnation =>
      write(() => {
        remove.run(incarnation);
      }),

    list: async () => list(),
  };
  return { registry, list };
}

const toWorker = (row: WorkerRow): WorkerRecord => ({
  incarnation: row.incarnation,
  host: row.host,
  pid: row.pid,
  processStart: row.process_start,
  name: row.name,
  branch: row.branch,
  startedAt: row.started_at,
  beatAt: row.beat_at,
  state: row.state,
  ...(row.task !== null && { task: row.task }),
  ...(row.agent !== null && { agent: row.agent }),
  ...(row.run_id !== null && { runId: row.run_id }),
  ...(row.note !== null && { note: row.note }),
  costUsd: row.cost_usd,
});
