import { createRequire } from 'node:module';
import { RepriseError, type Timestamp } from '../../core/index.ts';
import type { Owner } from '../port.ts';
import { type Database, enableWriteAheadLog, openDatabase, withStoreFailures } from './connection.ts';
import { checkVersion, migrate } from './migrations.ts';

/** A process that uses, or has used, a store. */
export interface StoreUser extends Omit<Owner, 'incarnation'> {
  /** Text for messages: `run x` or `worker y`. */
  readonly what: string;
  /** End of its lease, or time of its last heartbeat. */
  readonly lease?: Timestamp | undefined;
  readonly beat?: Timestamp | undefined;
}

interface CopyRequest {
  /** File of the store to copy. */
  readonly from: string;
  /** File of the copy, which must not exist. */
  readonly to: string;
  /** Project of all its runs, claims and workers. */
  readonly project: string;
  /** Throws if a user of the store is alive. No process can change the store meanwhile. */
  readonly check: (users: readonly StoreUser[]) => void;
  /** Returns the new form of a recorded workspace path. */
  readonly moved: (path: string) => string;
}

/**
 * Copies a store of any version to a new file of the latest version and checks the copy. Resolves to `false` without a
 * copy if the store is empty. Throws STORE_FAILED, STORE_NEWER, and what `check` throws.
 */
export async function copyStore({ from, to, project, check, moved }: CopyRequest): Promise<boolean> {
  const { backup } = createRequire(import.meta.url)(
    '@photostructure/sqlite',
  ) as typeof import('@photostructure/sqlite');
  const source = await openDatabase({ file: from });
  try {
    const version = withStoreFailures(from, () => checkVersion(source, from));
    if (version === 0) return false;
    withStoreFailures(from, () => source.exec('BEGIN IMMEDIATE'));
    check(usersIn(source, version));
    // A backup would wait forever for a transaction of its own connection.
    const reader = await openDatabase({ file: from, readonly: true });
    try {
      await backup(reader, to);
    } finally {
      reader.close();
    }
  } finally {
    // A connection with open statements keeps its lock after it is closed.
    if (source.isTransaction) source.exec('ROLLBACK');
    source.close();
  }
  const copy = await openDatabase({ file: to });
  try {
    withStoreFailures(to, () => {
      enableWriteAheadLog(copy);
      migrate(copy, to);
      copy.exec('BEGIN IMMEDIATE');
      for (const table of ['runs', 'claims', 'workers'])
        copy.prepare(`UPDATE ${table} SET project = ?`).run(project);
      moveWorkspaces(copy, moved);
      copy.exec('COMMIT');
      requireIntegrity(copy, from);
      copy.exec('PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE');
    });
  } finally {
    copy.close();
  }
  return true;
}

/** Versions before 3 have no workers. */
function usersIn(db: Database, version: number): readonly StoreUser[] {
  const runs: StoreUser[] = db
    .prepare(
      `SELECT 'run ' || run_id AS what, host, pid, process_start AS processStart, expires_at AS lease
       FROM runs WHERE incarnation IS NOT NULL`,
    )
    .all();
  if (version < 3) return runs;
  const workers: StoreUser[] = db
    .prepare(
      `SELECT 'worker ' || name AS what, host, pid, process_start AS processStart, beat_at AS beat FROM workers`,
    )
    .all();
  return [...workers, ...runs];
}

function moveWorkspaces(db: Database, moved: (path: string) => string): void {
  const update = db.prepare(
    `UPDATE events SET data = json_set(data, '$.path', ?) WHERE run_id = ? AND seq = ?`,
  );
  const rows: { run_id: string; seq: number; path: string }[] = db
    .prepare(`SELECT run_id, seq, data ->> '$.path' AS path FROM events WHERE type = 'workspace.created'`)
    .all();
  for (const { run_id, seq, path } of rows) if (moved(path) !== path) update.run(moved(path), run_id, seq);
}

function requireIntegrity(db: Database, from: string): void {
  const rows: { integrity_check: string }[] = db.prepare('PRAGMA integrity_check').all();
  const [first] = rows;
  if (rows.length === 1 && first?.integrity_check === 'ok') return;
  throw new RepriseError('STORE_FAILED', `the store ${from} is damaged: ${first?.integrity_check}`, {
    hint: 'restore it from a backup, or move its folder away to continue without its runs',
  });
}

/**
 * Adds everything of a copied store to a store, in one transaction. A run that is already there is left alone, so
 * repeating it changes nothing. Of two claims to a task, the newer one wins.
 */
export async function mergeStore({
  from,
  into,
}: {
  readonly from: string;
  readonly into: string;
}): Promise<void> {
  const db = await openDatabase({ file: into });
  try {
    withStoreFailures(into, () => {
      enableWriteAheadLog(db);
      migrate(db, into);
      db.prepare('ATTACH ? AS old').run(from);
      db.exec(mergeSql);
    });
  } catch (thrown) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw thrown;
  } finally {
    db.close();
  }
}

const runColumns =
  'run_id, workflow, status, started_at, ended_at, epoch, incarnation, host, pid, process_start, expires_at, project';

const mergeSql = `
  CREATE TEMP TABLE fresh AS SELECT run_id FROM old.runs WHERE run_id NOT IN (SELECT run_id FROM main.runs);
  BEGIN IMMEDIATE;
  INSERT INTO main.runs (${runColumns}) SELECT ${runColumns} FROM old.runs WHERE run_id IN fresh ORDER BY number;
  INSERT INTO main.events SELECT * FROM old.events WHERE run_id IN fresh;
  INSERT INTO main.inbox (run_id, at, message) SELECT run_id, at, message FROM old.inbox WHERE run_id IN fresh ORDER BY id;
  INSERT INTO main.processes SELECT * FROM old.processes WHERE run_id IN fresh;
  INSERT OR REPLACE INTO main.claims
    SELECT project, task, token, state, version, run_id, claimed_by, at, reason, landed_commit, branch,
      (SELECT coalesce(max(revision), 0) + 1 FROM main.claims)
    FROM old.claims AS theirs
    WHERE NOT EXISTS (
      SELECT 1 FROM main.claims AS ours
      WHERE ours.project = theirs.project AND ours.task = theirs.task AND ours.at >= theirs.at
    );
  COMMIT;
`;
