import { RepriseError } from '../../core/index.ts';
import type { Database } from './connection.ts';

/** Marks a SQLite file as ours, so that nobody's other database is ever given our tables. */
const applicationId = 0x52_70_72_73;

/** Entry n leads from version n to n + 1. An entry that was released never changes. */
const migrations: readonly string[] = [
  `
  CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    workflow TEXT NOT NULL,
    status TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    epoch INTEGER NOT NULL,
    incarnation TEXT,
    host TEXT,
    pid INTEGER,
    process_start TEXT,
    expires_at TEXT
  ) STRICT;
  CREATE INDEX runs_by_start ON runs (started_at);

  CREATE TABLE events (
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    seq INTEGER NOT NULL,
    at TEXT NOT NULL,
    type TEXT NOT NULL,
    step TEXT,
    worker INTEGER,
    attempt INTEGER,
    data TEXT NOT NULL,
    PRIMARY KEY (run_id, seq)
  ) STRICT, WITHOUT ROWID;

  -- Ids are never used again: an owner may still be working on a message that it has read.
  CREATE TABLE inbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    at TEXT NOT NULL,
    message TEXT NOT NULL
  ) STRICT;
  CREATE INDEX inbox_by_run ON inbox (run_id);

  PRAGMA application_id = ${applicationId};
  `,
  `
  CREATE TABLE processes (
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    pid INTEGER NOT NULL,
    process_start TEXT NOT NULL,
    step TEXT NOT NULL,
    PRIMARY KEY (run_id, pid)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  CREATE INDEX runs_by_status ON runs (status, started_at);

  CREATE TABLE claims (
    task TEXT NOT NULL PRIMARY KEY,
    token INTEGER NOT NULL,
    state TEXT NOT NULL,
    version TEXT NOT NULL,
    run_id TEXT REFERENCES runs (run_id),
    claimed_by TEXT NOT NULL,
    at TEXT NOT NULL,
    reason TEXT,
    landed_commit TEXT,
    branch TEXT,
    revision INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX claims_by_run ON claims (run_id);
  CREATE INDEX claims_by_revision ON claims (revision);

  -- A claim is held as long as its run has not ended: whoever waits for claims has to see that.
  CREATE TRIGGER claims_follow_runs AFTER UPDATE OF status ON runs WHEN old.status <> new.status BEGIN
    UPDATE claims SET revision = (SELECT max(revision) + 1 FROM claims)
    WHERE run_id = new.run_id AND state = 'held';
  END;

  CREATE TABLE workers (
    incarnation TEXT NOT NULL PRIMARY KEY,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    process_start TEXT NOT NULL,
    name TEXT NOT NULL,
    branch TEXT NOT NULL,
    started_at TEXT NOT NULL,
    beat_at TEXT NOT NULL,
    state TEXT NOT NULL,
    task TEXT,
    agent TEXT,
    run_id TEXT,
    note TEXT,
    cost_usd REAL
  ) STRICT, WITHOUT ROWID;
  `,
];

export const latestVersion = migrations.length;

/**
 * The version of the file: 0 if it is empty. Throws STORE_NEWER, or STORE_FAILED if it belongs to another program,
 * having changed nothing.
 */
export function checkVersion(db: Database, file: string): number {
  db.exec('BEGIN');
  try {
    return versionInTransaction(db, file);
  } finally {
    if (db.isTransaction) db.exec('COMMIT');
  }
}

/** Brings the file to the latest version, keeping its rows, or leaves it as it is. Several processes may do this at once. */
export function migrate(db: Database, file: string): void {
  if (checkVersion(db, file) === latestVersion) return;
  db.exec('BEGIN IMMEDIATE');
  try {
    // Another process may have migrated while this one waited for the lock.
    const version = versionInTransaction(db, file);
    for (const migration of migrations.slice(version)) db.exec(migration);
    db.exec(`PRAGMA user_version = ${latestVersion}; COMMIT`);
  } catch (thrown) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw thrown;
  }
}

function versionInTransaction(db: Database, file: string): number {
  const { tables } = db.prepare('SELECT count(*) AS tables FROM sqlite_schema').get();
  const { application_id: application } = db.prepare('PRAGMA application_id').get();
  const { user_version: version } = db.prepare('PRAGMA user_version').get();
  if (application !== applicationId && (tables > 0 || version !== 0)) {
    throw new RepriseError('STORE_FAILED', `${file} is a SQLite database, but not a store of Reprise`, {
      hint: 'choose another file for the store',
    });
  }
  if (version > latestVersion) {
    throw new RepriseError(
      'STORE_NEWER',
      `the store ${file} has version ${version}; this Reprise knows versions up to ${latestVersion}`,
      { hint: 'upgrade Reprise; the store was left as it is' },
    );
  }
  return version;
}
