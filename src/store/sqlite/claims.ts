import {
  byTask,
  type Claim,
  type ClaimDecision,
  type ClaimState,
  type ClaimStore,
  decideClaim,
  decideSettlement,
  isHeldBy,
} from '../claims.ts';
import { type Fence, type RunStatus, topProject } from '../port.ts';
import { byStart, type WorkerRecord, type WorkerRegistry, type WorkerState } from '../runs.ts';
import type { Database, Transactions } from './connection.ts';

interface ClaimRow {
  readonly project: string;
  readonly task: string;
  readonly token: number;
  readonly state: ClaimState;
  readonly version: string;
  readonly run_id: string | null;
  readonly run_status: RunStatus | null;
  readonly claimed_by: string;
  readonly at: string;
  readonly reason: string | null;
  readonly landed_commit: string | null;
  readonly branch: string | null;
}

const selectClaims = `
  SELECT claims.project AS project, task, token, state, version, run_id, runs.status AS run_status, claimed_by, at, reason, landed_commit, branch
  FROM claims LEFT JOIN runs USING (run_id)`;

interface ClaimsContext {
  readonly db: Database;
  /** Project of the claims; `undefined` lists those of all projects. */
  readonly project: string | undefined;
  readonly transactions: Transactions;
  /** Throws RUN_NOT_FOUND. */
  readonly statusOf: (runId: string) => RunStatus;
  /** Throws FENCED, RUN_NOT_FOUND. */
  readonly check: (fence: Fence) => void;
}

/** Claims in a SQLite database. */
export function claimsOn({ db, project, transactions: { read, write }, statusOf, check }: ClaimsContext) {
  const own = project ?? topProject;
  const toClaim = project === undefined ? claimWithProject : claimOf;
  const one = db.prepare(`${selectClaims} WHERE claims.project = ? AND task = ?`);
  const all = db.prepare(`${selectClaims} WHERE ${inScope(project, 'claims.project')}`);
  const put = db.prepare(
    `INSERT OR REPLACE INTO claims
       (project, task, token, state, version, run_id, claimed_by, at, reason, landed_commit, branch, revision)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT coalesce(max(revision), 0) + 1 FROM claims))`,
  );
  const held = db.prepare("SELECT task FROM claims WHERE run_id = ? AND state = 'held' ORDER BY task");
  const revision = db.prepare(
    `SELECT coalesce(max(revision), 0) AS revision FROM claims WHERE ${inScope(project, 'project')}`,
  );

  const current = (task: string): Claim | undefined => {
    const row: ClaimRow | undefined = one.get(own, task);
    return row && toClaim(row);
  };
  const keep = ({ task, token, state, version, runId, by, at, reason, commit, branch }: Claim): void => {
    const outcome = [reason ?? null, commit ?? null, branch ?? null];
    put.run(own, task, token, state, version, runId, by, at, ...outcome);
  };

  const revisionNow = (): number =>
    read(() => {
      const row: { revision: number } = revision.get(project ?? null);
      return row.revision;
    });

  const carryOut = <Answer>(fence: Fence | undefined, decide: () => ClaimDecision<Answer>): Answer =>
    write(() => {
      if (fence) check(fence);
      const { answer, kept } = decide();
      if (kept) keep(kept);
      return answer;
    });

  const store: ClaimStore = {
    take: async request =>
      carryOut(request.fence, () => {
        const runStatus = request.runId === null ? null : statusOf(request.runId);
        return decideClaim(current(request.task), request, runStatus);
      }),

    settle: async settlement =>
      carryOut(settlement.fence, () => decideSettlement(current(settlement.task), settlement)),

    list: async () =>
      read(() => {
        const rows: ClaimRow[] = all.all(project ?? null);
        return rows.map(toClaim).sort(byTask);
      }),

    isHeld: async claim => read(() => isHeldBy(current(claim.task), claim)),

    revision: async () => revisionNow(),
  };
  const tasksOf = (runId: string): readonly string[] =>
    read(() => {
      const rows: { task: string }[] = held.all(runId);
      return rows.map(({ task }) => task);
    });
  return { store, revision: revisionNow, tasksOf };
}

/** Condition with one parameter: the project, or null for all of them. */
const inScope = (project: string | undefined, column: string): string =>
  project === undefined ? `${column} IS NOT ?` : `${column} = ?`;

const claimWithProject = (row: ClaimRow): Claim => ({ ...claimOf(row), project: row.project });

const claimOf = (row: ClaimRow): Claim => ({
  task: row.task,
  token: row.token,
  state: row.state,
  version: row.version,
  runId: row.run_id,
  runStatus: row.state === 'held' ? row.run_status : null,
  by: row.claimed_by,
  at: row.at,
  ...(row.reason !== null && { reason: row.reason }),
  ...(row.landed_commit !== null && { commit: row.landed_commit }),
  ...(row.branch !== null && { branch: row.branch }),
});

interface WorkerRow {
  readonly incarnation: string;
  readonly project: string;
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

/** Worker registry in a SQLite database. */
export function workersOn(db: Database, project: string | undefined, { read, write }: Transactions) {
  const toWorker = project === undefined ? workerWithProject : workerOf;
  const put = db.prepare(
    `INSERT OR REPLACE INTO workers
       (incarnation, project, host, pid, process_start, name, branch, started_at, beat_at, state, task, agent, run_id, note, cost_usd)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const remove = db.prepare('DELETE FROM workers WHERE incarnation = ?');
  const all = db.prepare(`SELECT * FROM workers WHERE ${inScope(project, 'project')}`);

  const list = (): readonly WorkerRecord[] =>
    read(() => {
      const rows: WorkerRow[] = all.all(project ?? null);
      return rows.map(toWorker).sort(byStart);
    });

  const registry: WorkerRegistry = {
    put: async worker =>
      write(() => {
        const { incarnation, host, pid, processStart, name, branch, startedAt, beatAt, state } = worker;
        const { task = null, agent = null, runId = null, note = null, costUsd } = worker;
        const self = [incarnation, project ?? topProject, host, pid, processStart, name, branch, startedAt];
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

const workerWithProject = (row: WorkerRow): WorkerRecord => ({ ...workerOf(row), project: row.project });

const workerOf = (row: WorkerRow): WorkerRecord => ({
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
