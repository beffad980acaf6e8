import type { HistoryEvent, NewEvent, Timestamp } from '../../core/index.ts';
import { type NewRun, type RunQuery, type RunStatus, type RunSummary, topProject } from '../port.ts';
import {
  type EventRow,
  type LeaseState,
  type RunOutcome,
  runNotFound,
  toEventRow,
  toHistory,
  toHistoryOfList,
} from '../runs.ts';
import type { Database } from './connection.ts';

interface Continuation {
  readonly runId: string;
  readonly afterSeq: number;
  readonly at: Timestamp;
  readonly events: readonly NewEvent[];
}

interface JoinedRows {
  /** JSON array of all rows; null if there are none. */
  readonly list: string | null;
  readonly total: number;
}

/** Number of events per query. All values of a query stay alive until it ends and slow down garbage collection. */
const rowsAtOnce = 500;

/** Events of all runs. */
export function historyTable(db: Database) {
  const insert = db.prepare(
    'INSERT INTO events (run_id, seq, at, type, step, worker, attempt, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  );
  const selectAfter =
    'SELECT seq, at, type, step, worker, attempt, data FROM events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?';
  const after = db.prepare(selectAfter);
  after.setReturnArrays(true);
  // One text for many events is cheaper than one value per field. `data` is inserted unescaped: if it is not a single
  // JSON value, a sequence number is not at its expected index or the number of events differs, and the read falls back.
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
      // Reading row by row finds the damaged event, and succeeds if the batch was only too large for one string.
    }
    const rows: EventRow[] = after.all(runId, afterSeq, rowsAtOnce);
    return toHistory(runId, afterSeq, rows);
  }

  return {
    append({ runId, afterSeq, at, events }: Continuation): void {
      let seq = afterSeq;
      for (const event of events) {
        seq += 1;
        insert.run(runId, ...toEventRow(event, { runId, seq, at }));
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

interface RunRow {
  readonly run_id: string;
  readonly project: string;
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
  readonly suspension: string | null;
}

/** Columns of a run. The reason of a suspension is in its last event of that type. */
const summary = `*, CASE status WHEN 'suspended' THEN (SELECT data FROM events
  WHERE events.run_id = runs.run_id AND type = 'run.suspended' ORDER BY seq DESC LIMIT 1) END AS suspension`;

const newestFirst = 'ORDER BY started_at DESC, number DESC';

/** Summaries of runs. Lists those of one project, or all if `project` is `undefined`. */
export function runsTable(db: Database, project: string | undefined) {
  const ofProject = project === undefined ? 'project IS NOT ?' : 'project = ?';
  const scope = project ?? null;
  const toSummary = project === undefined ? summaryWithProject : summaryOf;
  const insert = db.prepare(
    `INSERT INTO runs (run_id, project, workflow, status, started_at, epoch, incarnation, host, pid, process_start, expires_at)
     VALUES (?, ?, ?, 'running', ?, 1, ?, ?, ?, ?, ?) ON CONFLICT (run_id) DO NOTHING`,
  );
  const setOutcome = db.prepare('UPDATE runs SET status = ?, ended_at = ? WHERE run_id = ?');
  const one = db.prepare(`SELECT ${summary} FROM runs WHERE run_id = ?`);
  const all = db.prepare(
    `SELECT ${summary} FROM runs WHERE ${ofProject} AND workflow = coalesce(?, workflow) ${newestFirst} LIMIT ?`,
  );
  const withStatus = db.prepare(
    `SELECT ${summary} FROM runs
     WHERE ${ofProject} AND status IN (SELECT value FROM json_each(?)) AND workflow = coalesce(?, workflow)
     ${newestFirst} LIMIT ?`,
  );
  // `substr` is exact where LIKE and an upper bound are not; the lower bound lets the index skip smaller ids.
  const withPrefix = db.prepare(
    `SELECT ${summary} FROM runs
     WHERE run_id >= ?1 AND substr(run_id, 1, length(?1)) = ?1 AND ${ofProject}2 ${newestFirst} LIMIT 10`,
  );
  // Read before every append, so one statement returns both the owner and the last sequence number.
  const leaseState = db.prepare(
    `SELECT epoch, incarnation, coalesce((SELECT max(seq) FROM events WHERE events.run_id = runs.run_id), 0)
     FROM runs WHERE run_id = ?`,
  );
  leaseState.setReturnArrays(true);

  return {
    /** Returns `false` if the id is taken. */
    insert({ runId, workflow, at, owner, expiresAt }: NewRun): boolean {
      const { incarnation, host, pid, processStart } = owner;
      const holder = [incarnation, host, pid, processStart, expiresAt];
      return insert.run(runId, project ?? topProject, workflow, at, ...holder).changes === 1;
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
    leaseState(runId: string): LeaseState & { readonly lastSeq: number } {
      const row: [number, string | null, number] | undefined = leaseState.get(runId);
      if (!row) throw runNotFound(runId);
      return { epoch: row[0], incarnation: row[1], lastSeq: row[2] };
    },

    list({ limit = -1, workflow, status }: RunQuery): RunSummary[] {
      const ofWorkflow = workflow ?? null;
      const rows: RunRow[] =
        status === undefined
          ? all.all(scope, ofWorkflow, limit)
          : withStatus.all(scope, JSON.stringify([status].flat()), ofWorkflow, limit);
      return rows.map(toSummary);
    },

    startingWith(prefix: string): RunSummary[] {
      const rows: RunRow[] = withPrefix.all(prefix, scope);
      return rows.map(toSummary);
    },
  };
}

const summaryWithProject = (row: RunRow): RunSummary => ({ ...summaryOf(row), project: row.project });

const summaryOf = (row: RunRow): RunSummary => ({
  runId: row.run_id,
  workflow: row.workflow,
  status: row.status,
  startedAt: row.started_at,
  endedAt: row.ended_at,
  ...(row.suspension === null ? {} : { suspension: JSON.parse(row.suspension) }),
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
