import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite';
import { RepriseError } from '../../core/errors.ts';
import { isLocked, toStoreFailure } from './failure.ts';

export type Database = DatabaseSyncInstance;

export interface SqliteLocation {
  /** Created, with its folder, unless `readonly`. */
  readonly file: string;
  readonly readonly?: boolean | undefined;
  /** Unless it is false, what was committed is there after a loss of power as well. */
  readonly durable?: boolean | undefined;
}

const busyTimeoutMs = 5000;
const maxWalAttempts = 50;

// `import` takes twice as long: it reads CommonJS modules once more to find their exports.
const loadSqlite = (): typeof import('@photostructure/sqlite') =>
  createRequire(import.meta.url)('@photostructure/sqlite');

/** Opens the file and makes commits durable. Whoever has checked that it is a store goes on with `enableWriteAheadLog`. */
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
      hint: 'check that every part of the path is a folder that may be written to',
      cause,
    });
  }
  return withStoreFailures(file, () => {
    const db = new DatabaseSync(file, { readOnly: readonly, timeout: busyTimeoutMs });
    db.exec(`PRAGMA synchronous = ${durable ? 'FULL' : 'OFF'}; PRAGMA foreign_keys = ON`);
    return db;
  });
}

/** Lets readers and the writer work at the same time. The mode stays with the file. */
export function enableWriteAheadLog(db: Database): void {
  for (let attempt = 1; ; attempt++) {
    try {
      const { journal_mode: mode } = db.prepare('PRAGMA journal_mode = WAL').get();
      if (mode === 'wal') return;
      throw new RepriseError(
        'STORE_FAILED',
        `the store cannot use a write-ahead log (it is in mode ${mode})`,
        {
          hint: 'put it on a local disk: network file systems do not offer the locks that it needs',
        },
      );
    } catch (thrown) {
      if (!isLocked(thrown) || attempt === maxWalAttempts) throw thrown;
    }
    // Changing the mode fails at once when another process is opening the file too; a transaction waits for it.
    db.exec('BEGIN IMMEDIATE; COMMIT');
  }
}

/** Calls `work`; whatever SQLite throws in it becomes STORE_FAILED. */
export function withStoreFailures<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    throw toStoreFailure(file, thrown);
  }
}

export interface Transactions {
  /** Runs `work` in a transaction that has the write lock from the beginning; whatever it throws undoes all of it. */
  write<T>(work: () => T): T;
  read<T>(work: () => T): T;
}

export function transactionsOn(db: Database, file: string): Transactions {
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const whileOpen = <T>(work: () => T): T => {
    if (!db.isOpen) throw new RepriseError('STORE_FAILED', `the store ${file} is closed`);
    return withStoreFailures(file, work);
  };
  return {
    write: work => whileOpen(() => transaction({ db, begin, commit, work })),
    read: whileOpen,
  };
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
    // A full disk has already undone it.
    if (db.isTransaction) db.exec('ROLLBACK');
    throw thrown;
  }
}
