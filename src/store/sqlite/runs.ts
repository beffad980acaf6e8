import { runNotFound, type Standing } from '../ownership.ts';
import type { NewRun, RunQuery, RunStatus, RunSummary } from '../port.ts';
import type { RunOutcome } from '../run-outcome.ts';
import type { Database } from './connection.ts';

interface RunRow {
  readonly run_id: string;
  readonly workflow: string;
  readonly status: RunStatus;
  readonly started_at: string;
  readonly ended_at: string | null;
  readonly epoch: number;
  readonly incarnation: string | null;
  readonly host: string;
  readonly pid: number;
  readonly process_start: string;
  readonly expires_at: string;
}

const newestFirst = 'ORDER BY started_at DESC, number DESC';

/** The summaries of runs. */
export function runsTable(db: Database) {
  const insert = db.prepare(
    `INSERT INTO runs (run_id, workflow, status, started_at, epoch, incarnation, host, pid, process_start, expires_at)
     VALUES (?, ?, 'running', ?, 1, ?, ?, ?, ?, ?) ON CONFLICT (run_id) DO NOTHING`,
  );
  const setOutcome = db.prepare('UPDATE runs SET status = ?, ended_at = ? WHERE run_id = ?');
  const one = db.prepare('SELECT * FROM runs WHERE run_id = ?');
  const all = db.prepare(`SELECT * FROM runs WHERE workflow = coalesce(?, workflow) ${newestFirst} LIMIT ?`);
  const withStatus = db.prepare(
    `SELECT * FROM runs WHERE status IN (SELECT value FROM json_each(?)) AND workflow = coalesce(?, workflow)
     ${newestFirst} LIMIT ?`,
  );
  // Exact also where LIKE and an upper bound are not; the lower bound lets the index skip what comes before.
  const withPrefix = db.prepare(
    `SELECT * FROM runs WHERE run_id >= ?1 AND substr(run_id, 1, length(?1)) = ?1 ${newestFirst} LIMIT 10`,
  );
  // Read before every append: one statement for the owner and the end of the history.
  const standing = db.prepare(
    `SELECT epoch, incarnation, coalesce((SELECT max(seq) FROM events WHERE events.run_id = runs.run_id), 0)
     FROM runs WHERE run_id = ?`,
  );
  standing.setReturnArrays(true);

  return {
    /** `false` if the id is taken. */
    insert({ runId, workflow, at, owner, expiresAt }: NewRun): boolean {
      const { incarnation, host, pid, processStart } = owner;
      return insert.run(runId, workflow, at, incarnation, host, pid, processStart, expiresAt).changes === 1;
    },

    setOutcome(runId: string, { status, endedAt }: RunOutcome): void {
      setOutcome.run(status, endedAt, runId);
    },

    find: (runId: string): RunSummary | undefined => {
      const row: RunRow | undefined = one.get(runId);
      return row && toSummary(row);
    },

    /** Throws RUN_NOT_FOUND. */
    get(runId: string): RunSummary {
      const row: RunRow | undefined = one.get(runId);
      if (!row) throw runNotFound(runId);
      return toSummary(row);
    },

    /** Throws RUN_NOT_FOUND. */
    standing(runId: string): Standing & { readonly lastSeq: number } {
      const row: [number, string | null, number] | undefined = standing.get(runId);
      if (!row) throw runNotFound(runId);
      return { epoch: row[0], incarnation: row[1], lastSeq: row[2] };
    },

    list({ limit = -1, workflow, status }: RunQuery): RunSummary[] {
      const ofWorkflow = workflow ?? null;
      const rows: RunRow[] =
        status === undefined
          ? all.all(ofWorkflow, limit)
          : withStatus.all(JSON.stringify([status].flat()), ofWorkflow, limit);
      return rows.map(toSummary);
    },

    startingWith(prefix: string): RunSummary[] {
      const rows: RunRow[] = withPrefix.all(prefix);
      return rows.map(toSummary);
    },
  };
}

const toSummary = (row: RunRow): RunSummary => ({
  runId: row.run_id,
  workflow: row.workflow,
  status: row.status,
  startedAt: row.started_at,
  endedAt: row.ended_at,
  owner: ownerOf(row),
});

function ownerOf(row: RunRow): RunSummary['owner'] {
  if (row.incarnation === null) return null;
  return {
    incarnation: row.incarnation,
    host: row.host,
    pid: row.pid,
    processStart: row.process_start,
    epoch: row.epoch,
    expiresAt: row.expires_at,
  };
}
