import { existsSync, mkdirSync, type Stats, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite';
import { RepriseError } from '../../core/index.ts';

export type Database = DatabaseSyncInstance;

export interface SqliteLocation {
  /** Path of the file. It is created, with its folder, unless `readonly`. */
  readonly file: string;
  readonly readonly?: boolean | undefined;
  /** Whether commits survive a loss of power. Defaults to `true`. */
  readonly durable?: boolean | undefined;
}

const busyTimeoutMs = 5000;
const maxWalAttempts = 50;

// `import` takes twice as long, because it reads a CommonJS module once more to find its exports.
export const loadSqlite = (): typeof import('@photostructure/sqlite') =>
  createRequire(import.meta.url)('@photostructure/sqlite');

/** Opens the file and makes commits durable. Call `enableWriteAheadLog` after checking that it is a store. */
export async function openDatabase({
  file,
  readonly = false,
  durable = true,
}: SqliteLocation): Promise<Database> {
  const { DatabaseSync } = loadSqlite();
  try {
    if (!readonly) mkdirSync(dirname(file), { recursive: true });
  } catch (cause) {
    throw new RepriseError('STORE_FAILED', `the folder of the store ${file} cannot be created`, {
      hint: 'check that every part of the path is a writable folder',
      cause,
    });
  }
  return withStoreFailures(file, () => {
    const db = new DatabaseSync(file, { readOnly: readonly, timeout: busyTimeoutMs });
    db.exec(`PRAGMA synchronous = ${durable ? 'FULL' : 'OFF'}; PRAGMA foreign_keys = ON`);
    return db;
  });
}

/** Switches to write-ahead logging, so readers do not block the writer. The mode is stored in the file. */
export function enableWriteAheadLog(db: Database): void {
  for (let attempt = 1; ; attempt++) {
    try {
      const { journal_mode: mode } = db.prepare('PRAGMA journal_mode = WAL').get();
      if (mode === 'wal') return;
      throw new RepriseError(
        'STORE_FAILED',
        `the store cannot use a write-ahead log (its journal mode is ${mode})`,
        {
          hint: 'move it to a local disk: network file systems lack the locks that it needs',
        },
      );
    } catch (thrown) {
      if (!isLocked(thrown) || attempt === maxWalAttempts) throw thrown;
    }
    // Changing the mode fails at once while another process opens the file; a transaction waits for that process.
    db.exec('BEGIN IMMEDIATE; COMMIT');
  }
}

/** Calls `work` and converts errors of SQLite to STORE_FAILED. */
export function withStoreFailures<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    throw toStoreFailure(file, thrown);
  }
}

export interface Transactions {
  /** Runs `work` in a transaction that takes the write lock at its start. An error rolls everything back. */
  write<T>(work: () => T): T;
  read<T>(work: () => T): T;
  /** Moves the write-ahead log into the file, as far as no reader needs it. Never throws. */
  checkpoint(): void;
}

/** Transactions on an open database. Each of them throws STORE_FAILED if the file at its path is not the opened one. */
export function transactionsOn(db: Database, file: string): Transactions {
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const checkFiles = watchFiles(db, file);
  const whileOpen = <T>(work: () => T): T => {
    if (!db.isOpen) throw new RepriseError('STORE_FAILED', `the store ${file} is closed`);
    return withStoreFailures(file, work);
  };
  return {
    write: work =>
      whileOpen(() =>
        transaction({
          db,
          begin,
          commit,
          work: () => {
            const result = work();
            checkFiles();
            return result;
          },
        }),
      ),
    read: work =>
      whileOpen(() => {
        checkFiles();
        return work();
      }),
    checkpoint: () => {
      try {
        checkFiles();
        db.exec('PRAGMA wal_checkpoint(PASSIVE)');
      } catch {
        // Every commit is durable in the write-ahead log.
      }
    },
  };
}

/**
 * Returns a function that throws STORE_FAILED if the file or its write-ahead log was deleted, replaced or truncated.
 * SQLite would continue with the open, but unlinked file, and lose every commit. While a connection is open, no process
 * that uses SQLite deletes or shortens either of them, and their inode numbers are not reused.
 */
function watchFiles(db: Database, file: string): () => void {
  // Opens the log, if this connection has not read anything yet.
  db.exec('SELECT 1 FROM sqlite_schema LIMIT 1');
  const watched = [file, `${file}-wal`].map(path => ({ path, seen: statOf(path) }));
  return () => {
    for (const each of watched) {
      const now = statOf(each.path);
      const { seen } = each;
      if (seen && (!now || now.ino !== seen.ino || now.dev !== seen.dev || now.size < seen.size))
        throw storeChanged(each.path, now, seen);
      each.seen = now;
    }
  };
}

const statOf = (path: string): Stats | undefined => {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
};

function storeChanged(path: string, now: Stats | undefined, seen: Stats): RepriseError {
  const what = !now ? 'deleted' : now.ino === seen.ino && now.dev === seen.dev ? 'truncated' : 'replaced';
  return new RepriseError('STORE_FAILED', `${path} was ${what} while this process was using it`, {
    hint: 'nothing was written or landed after that; restore the store from a backup, then resume the run',
  });
}

interface Transaction<T> {
  readonly db: Database;
  readonly begin: StatementSyncInstance;
  readonly commit: StatementSyncInstance;
  readonly work: () => T;
}

function transaction<T>({ db, begin, commit, work }: Transaction<T>): T {
  begin.run();
  try {
    const result = work();
    commit.run();
    return result;
  } catch (thrown) {
    // SQLite itself has already rolled back if the disk is full.
    if (db.isTransaction) db.exec('ROLLBACK');
    throw thrown;
  }
}

type Trouble = 'full' | 'readonly' | 'locked' | 'damaged' | 'unopenable' | 'io' | 'other';

/** Primary result codes of SQLite with their texts, because the driver omits the code of some errors. */
const troubles: readonly { readonly code: number; readonly text: string; readonly trouble: Trouble }[] = [
  { code: 3, text: 'access permission denied', trouble: 'readonly' },
  { code: 5, text: 'database is locked', trouble: 'locked' },
  { code: 6, text: 'database table is locked', trouble: 'locked' },
  { code: 8, text: 'attempt to write a readonly database', trouble: 'readonly' },
  { code: 10, text: 'disk I/O error', trouble: 'io' },
  { code: 11, text: 'database disk image is malformed', trouble: 'damaged' },
  { code: 13, text: 'database or disk is full', trouble: 'full' },
  { code: 14, text: 'unable to open database file', trouble: 'unopenable' },
  { code: 26, text: 'file is not a database', trouble: 'damaged' },
];

const isSqliteError = (thrown: unknown): thrown is Error & { readonly errcode?: unknown } =>
  thrown instanceof Error && 'code' in thrown && thrown.code === 'ERR_SQLITE_ERROR';

function troubleOf(thrown: Error & { readonly errcode?: unknown }): Trouble {
  const { errcode, message } = thrown;
  const known = troubles.find(({ code, text }) =>
    // The low byte of an extended code is the primary one.
    typeof errcode === 'number' ? (errcode & 0xff) === code : message.includes(text),
  );
  return known?.trouble ?? 'other';
}

const isLocked = (thrown: unknown): boolean => isSqliteError(thrown) && troubleOf(thrown) === 'locked';

/** Converts an error of SQLite to STORE_FAILED with a fitting hint. Returns any other error unchanged. */
export function toStoreFailure(file: string, thrown: unknown): unknown {
  if (!isSqliteError(thrown)) return thrown;
  const { what, hint } = explain(troubleOf(thrown));
  return new RepriseError('STORE_FAILED', `the store ${file} ${what}: ${thrown.message}`, {
    hint,
    cause: thrown,
  });
}

function explain(trouble: Trouble): { readonly what: string; readonly hint: string } {
  switch (trouble) {
    case 'full':
      return {
        what: 'cannot grow',
        hint: 'the disk is full: free some space, then resume the run; all recorded events are safe',
      };
    case 'readonly':
      return {
        what: 'cannot be written',
        hint: 'it is read-only: check the permissions of the file and of its folder',
      };
    case 'locked':
      return {
        what: 'is locked',
        hint: 'another process has held the write lock for too long: wait for it or stop it, then try again',
      };
    case 'damaged':
      return {
        what: 'is damaged',
        hint: 'keep a copy and restore it from a backup, or move it away to start with an empty store',
      };
    case 'unopenable':
      return {
        what: 'cannot be opened',
        hint: 'check that the path is a file, that its folder exists and that both are writable',
      };
    case 'io':
      return {
        what: 'could not be read or written',
        hint: 'the disk reports an error: check its health and the free space',
      };
    case 'other':
      return { what: 'failed', hint: 'this may be a bug in Reprise: report it with the message above' };
  }
}

/**
 * Exclusive lock on a file, which the kernel releases when this process ends, however it ends. It is an open exclusive
 * transaction of SQLite, so it also excludes other connections of the same process.
 *
 * The kernel drops all locks of a process on a file as soon as the process closes any descriptor of that file. Only SQLite
 * knows when that is safe: no other code may open, read, copy or sync a lock file. `stat` and `chmod` by path are safe.
 */
export interface KernelLock {
  /** Whether the path still names the locked file. */
  isIntact(): boolean;
  /** Idempotent. */
  release(): void;
}

/** Takes the lock, and creates the file and its folder. Returns `undefined` if it is held. Throws STORE_FAILED. */
export function tryKernelLock(file: string): KernelLock | undefined {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const db = begin(file);
    if (db === 'held') return undefined;
    const inode = db && inodeOf(file);
    if (db && inode !== undefined)
      return {
        isIntact: () => db.isOpen && inodeOf(file) === inode,
        release: () => {
          if (db.isOpen) db.close();
        },
      };
    // Another process has just deleted the file or its folder.
    db?.close();
  }
  throw new RepriseError('STORE_FAILED', `the lock ${file} is deleted again and again`, {
    hint: 'stop the process that deletes files below this folder',
  });
}

/** Whether a process holds the lock. Creates nothing. */
export function isKernelLocked(file: string): boolean {
  if (!existsSync(file)) return false;
  const { DatabaseSync } = loadSqlite();
  let db: Database | undefined;
  try {
    db = new DatabaseSync(file, { readOnly: true, timeout: 0 });
    db.exec('PRAGMA schema_version');
    return false;
  } catch (thrown) {
    if (isLocked(thrown)) return true;
    if (!existsSync(file)) return false;
    throw toStoreFailure(file, thrown);
  } finally {
    db?.close();
  }
}

const maxAttempts = 100;

/** Opens an exclusive transaction; `undefined` if the folder disappears meanwhile. */
function begin(file: string): Database | 'held' | undefined {
  const { DatabaseSync } = loadSqlite();
  let db: Database | undefined;
  try {
    mkdirSync(dirname(file), { recursive: true });
    db = new DatabaseSync(file, { timeout: 0 });
    db.exec('BEGIN EXCLUSIVE');
    return db;
  } catch (thrown) {
    db?.close();
    if (isLocked(thrown)) return 'held';
    if (!existsSync(dirname(file))) return undefined;
    throw toStoreFailure(file, thrown);
  }
}

const inodeOf = (file: string): bigint | undefined =>
  statSync(file, { bigint: true, throwIfNoEntry: false })?.ino;
