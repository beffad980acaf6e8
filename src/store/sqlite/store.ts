import { RepriseError, type Timestamp } from '../../core/index.ts';
import {
  type ChildRecord,
  type EventStore,
  type InboxEntry,
  type InboxMessage,
  type Lease,
  type Owner,
  type RunStatus,
  topProject,
} from '../port.ts';
import {
  checkBatch,
  checkLease,
  currentHolder,
  type InboxRow,
  outcomeOf,
  runIdTaken,
  toInboxEntry,
} from '../runs.ts';
import { claimsOn, workersOn } from './claims.ts';
import {
  type Database,
  enableWriteAheadLog,
  openDatabase,
  type SqliteLocation,
  transactionsOn,
  withStoreFailures,
} from './connection.ts';
import { historyTable, runsTable } from './history.ts';
import { checkVersion, latestVersion, migrate } from './migrations.ts';

interface StoreLocation extends SqliteLocation {
  /** Project to open the store for; `null` for all of them. Defaults to the one at the top of the worktree. */
  readonly project?: string | null | undefined;
}

/**
 * Opens the store in a SQLite file, and creates or migrates it unless `readonly`. Any number of processes may open it.
 * Throws STORE_NEWER and STORE_FAILED, and if it is `readonly` STORE_OLDER, or STORE_EMPTY without tables.
 */
export async function openSqliteStore(location: StoreLocation): Promise<EventStore> {
  const { file, readonly = false } = location;
  const db = await openDatabase(location);
  try {
    return withStoreFailures(file, () => {
      const version = checkVersion(db, file);
      if (!readonly) {
        enableWriteAheadLog(db);
        migrate(db, file);
      } else if (version < latestVersion) {
        throw tooOld(file, version);
      }
      return storeOn(db, location);
    });
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

const tooOld = (file: string, version: number) =>
  version === 0
    ? stillEmpty(file)
    : new RepriseError(
        'STORE_OLDER',
        `the store ${file} has version ${version} and cannot be migrated read-only`,
        {
          hint: 'open it for writing once, which migrates it to the latest version',
        },
      );

const stillEmpty = (file: string) =>
  new RepriseError('STORE_EMPTY', `the store ${file} is still empty`, {
    hint: 'another process is creating it: try again',
  });

/** Event store on a database of the latest version. */
export function storeOn(db: Database, { file, project: given = topProject }: StoreLocation): EventStore {
  const project = given ?? undefined;
  const transactions = transactionsOn(db, file);
  const { write, read } = transactions;
  const runs = runsTable(db, project);
  const leases = leasesTable(db);
  const history = historyTable(db);
  const inbox = inboxTable(db);
  const processes = processesTable(db);
  const workers = workersOn(db, project, transactions);
  const claims = claimsOn({
    db,
    project,
    transactions,
    statusOf: runId => runs.get(runId).status,
    check: ({ runId, lease }) => checkLease(runId, runs.leaseState(runId), lease),
  });

  return {
    createRun: async run =>
      write(() => {
        const { runId, at, events, owner } = run;
        if (!runs.insert(run)) throw runIdTaken(runId);
        history.append({ runId, afterSeq: 0, at, events });
        const outcome = outcomeOf(events, at);
        if (outcome) runs.setOutcome(runId, outcome);
        return { epoch: 1, incarnation: owner.incarnation };
      }),

    acquire: async request =>
      write(() => {
        const { runId, owner, expiresAt } = request;
        const held = currentHolder(runs.get(runId).owner, request);
        return held ?? { kind: 'acquired', lease: leases.grant(runId, owner, expiresAt) };
      }),

    renew: async (runId, lease, expiresAt) => write(() => leases.renew(runId, lease, expiresAt)),

    release: async (runId, lease, status) => write(() => leases.release(runId, lease, status)),

    holdsRun: async (runId, lease) => read(() => leases.holds(runId, lease)),

    append: async batch =>
      write(() => {
        const { runId, at, events, consumed, expectedSeq } = batch;
        checkBatch(batch, runs.leaseState(runId));
        history.append({ runId, afterSeq: expectedSeq, at, events });
        if (consumed) inbox.remove(runId, consumed);
        const outcome = outcomeOf(events, at);
        if (outcome) runs.setOutcome(runId, outcome);
      }),

    read: async (runId, afterSeq = 0) =>
      read(() => {
        const events = history.read(runId, afterSeq);
        if (events.length === 0) runs.leaseState(runId);
        return events;
      }),

    list: async (query = {}) => read(() => runs.list(query)),

    find: async prefix => read(() => runs.startingWith(prefix)),

    post: async (runId, message, at, seen) =>
      write(() => {
        const { lastSeq } = runs.leaseState(runId);
        if (seen && (seen.lastSeq !== lastSeq || seen.lastEntry !== inbox.lastEntry(runId))) return false;
        return inbox.insert(runId, message, at);
      }),

    inbox: async runId => read(() => inbox.read(runId)),

    addProcess: async (runId, lease, child) =>
      write(() => {
        checkLease(runId, runs.leaseState(runId), lease);
        processes.put(runId, child);
      }),

    removeProcess: async (runId, pid) => write(() => processes.remove(runId, pid)),

    processes: async runId => read(() => processes.read(runId)),

    claims: claims.store,
    workers: workers.registry,
    glance: {
      revision: claims.revision,
      list: query => read(() => runs.list(query)),
      ownerOf: runId => read(() => runs.find(runId)?.owner),
      tasksOf: claims.tasksOf,
      workers: workers.list,
    },

    close: async () => {
      if (!db.isOpen) return;
      // A database with open statements is not closed completely, and then SQLite does not checkpoint it.
      transactions.checkpoint();
      db.close();
    },
  };
}

/** Lease columns of a run. Every statement except `grant` names the lease, so it does nothing once the lease is lost. */
function leasesTable(db: Database) {
  const grant = db.prepare(
    `UPDATE runs SET epoch = epoch + 1, incarnation = ?, host = ?, pid = ?, process_start = ?, expires_at = ?
     WHERE run_id = ? RETURNING epoch`,
  );
  const renew = db.prepare(
    'UPDATE runs SET expires_at = ? WHERE run_id = ? AND epoch = ? AND incarnation = ?',
  );
  const release = db.prepare(
    `UPDATE runs SET status = coalesce(?, status), incarnation = NULL, host = NULL, pid = NULL, process_start = NULL, expires_at = NULL
     WHERE run_id = ? AND epoch = ? AND incarnation = ?`,
  );

  const find = db.prepare('SELECT 1 FROM runs WHERE run_id = ? AND epoch = ? AND incarnation = ?');

  return {
    /** Grants a lease. The caller must have checked that the run is free. */
    grant(runId: string, owner: Owner, expiresAt: Timestamp): Lease {
      const { incarnation, host, pid, processStart } = owner;
      const row: { epoch: number } = grant.get(incarnation, host, pid, processStart, expiresAt, runId);
      return { epoch: row.epoch, incarnation };
    },

    /** Returns `false` if the lease is lost. */
    renew: (runId: string, { epoch, incarnation }: Lease, expiresAt: Timestamp): boolean =>
      renew.run(expiresAt, runId, epoch, incarnation).changes === 1,

    release(runId: string, { epoch, incarnation }: Lease, status?: RunStatus): void {
      release.run(status ?? null, runId, epoch, incarnation);
    },

    holds: (runId: string, { epoch, incarnation }: Lease): boolean =>
      find.get(runId, epoch, incarnation) !== undefined,
  };
}

/** Inbox messages, from processes that do not own the run. */
function inboxTable(db: Database) {
  const insert = db.prepare(
    'INSERT INTO inbox (run_id, at, message) SELECT run_id, ?, ? FROM runs WHERE run_id = ?',
  );
  const select = db.prepare('SELECT id, at, message FROM inbox WHERE run_id = ? ORDER BY id');
  const remove = db.prepare('DELETE FROM inbox WHERE id = ? AND run_id = ?');
  const last = db.prepare('SELECT coalesce(max(id), 0) AS id FROM inbox WHERE run_id = ?');

  return {
    lastEntry(runId: string): number {
      const row: { id: number } = last.get(runId);
      return row.id;
    },

    /** Returns `false` if there is no such run. */
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

interface ProcessRow {
  readonly pid: number;
  readonly process_start: string;
  readonly step: string;
}

/** Child processes that the next owner must stop if this one dies. */
function processesTable(db: Database) {
  // A pid is reused only after its process has ended, so the newer process replaces the older one.
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
