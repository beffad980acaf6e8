import { RepriseError } from '../../core/index.ts';
import { topProject } from '../port.ts';
import type { Database } from './connection.ts';

/** Marks a SQLite file as a Reprise store, so no tables are ever created in another program's database. */
const applicationId = 0x52_70_72_73;

/** Entry n migrates version n to n + 1. A released entry must never change. */
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

  -- Ids are never reused: an owner may still be processing a message that it has read.
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

  -- A claim is held until its run ends, so a change of the run's status must raise the revision of the claims.
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
  // A run that waits for a person, a signal or a timer used to be called suspended.
  `UPDATE runs SET status = 'waiting' WHERE status = 'suspended';`,
  `
  -- Path of the project relative to the top of its worktree.
  ALTER TABLE runs ADD COLUMN project TEXT NOT NULL DEFAULT '${topProject}';
  ALTER TABLE workers ADD COLUMN project TEXT NOT NULL DEFAULT '${topProject}';

  DROP TRIGGER claims_follow_runs;
  ALTER TABLE claims RENAME TO claims_of_tasks;
  DROP INDEX claims_by_run;
  DROP INDEX claims_by_revision;
  CREATE TABLE claims (
    project TEXT NOT NULL,
    task TEXT NOT NULL,
    token INTEGER NOT NULL,
    state TEXT NOT NULL,
    version TEXT NOT NULL,
    run_id TEXT REFERENCES runs (run_id),
    claimed_by TEXT NOT NULL,
    at TEXT NOT NULL,
    reason TEXT,
    landed_commit TEXT,
    branch TEXT,
    revision INTEGER NOT NULL,
    PRIMARY KEY (project, task)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO claims SELECT '${topProject}', * FROM claims_of_tasks;
  DROP TABLE claims_of_tasks;
  CREATE INDEX claims_by_run ON claims (run_id);
  CREATE INDEX claims_by_revision ON claims (revision);

  CREATE TRIGGER claims_follow_runs AFTER UPDATE OF status ON runs WHEN old.status <> new.status BEGIN
    UPDATE claims SET revision = (SELECT max(revision) + 1 FROM claims)
    WHERE run_id = new.run_id AND state = 'held';
  END;
  `,
];

export const latestVersion = migrations.length;

/**
 * Returns the version of the file, 0 if it is empty. Throws STORE_NEWER, or STORE_FAILED if the file belongs to another
 * program. Never changes the file.
 */
export function checkVersion(db: Database, file: string): number {
  db.exec('BEGIN');
  try {
    return versionInTransaction(db, file);
  } finally {
    if (db.isTransaction) db.exec('COMMIT');
  }
}

/** Migrates the file to the latest version in one transaction, and keeps its rows. Safe for concurrent processes. */
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
    throw new RepriseError('STORE_FAILED', `${file} is a SQLite database, but not a Reprise store`, {
      hint: 'choose another file for the store',
    });
  }
  if (version > latestVersion) {
    throw new RepriseError(
      'STORE_NEWER',
      `the store ${file} has version ${version}; this Reprise supports versions up to ${latestVersion}`,
      { hint: 'upgrade Reprise; the store was not changed' },
    );
  }
  return version;
}
