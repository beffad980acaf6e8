import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import { type Database, isLocked, loadSqlite, toStoreFailure } from './connection.ts';

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
