import { existsSync } from 'node:fs';
import { DatabaseSync } from '@photostructure/sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { completed, newRun, time } from '../samples.conformance.ts';
import { type Database, enableWriteAheadLog, openDatabase } from './connection.ts';
import { openSqliteStore } from './store.ts';
import { temporaryFile, temporaryStore } from './temporary.conformance.ts';

const pragma = (db: Database, name: string): unknown => Object.values(db.prepare(`PRAGMA ${name}`).get())[0];

describe('opening a SQLite store', () => {
  it.each([false, true])('makes commits durable on every connection (read-only: %s)', async readonly => {
    const { file } = await temporaryStore();
    const db = await openDatabase({ file, readonly });
    onTestFinished(() => db.close());
    expect(pragma(db, 'synchronous')).toBe(2);
    expect(pragma(db, 'busy_timeout')).toBe(5000);
    expect(pragma(db, 'foreign_keys')).toBe(1);
    expect(pragma(db, 'journal_mode')).toBe('wal');
  });

  it('waits for another process that opens it at the same time', async () => {
    const file = await temporaryFile();
    const other = new DatabaseSync(file);
    const db = new DatabaseSync(file, { timeout: 0 });
    onTestFinished(() => {
      other.close();
      db.close();
    });
    other.exec('BEGIN IMMEDIATE');
    const execute = db.exec.bind(db);
    // The other process commits at the very moment at which this one would wait for the lock.
    const value = (sql: string) => {
      other.exec('COMMIT');
      execute(sql);
    };
    Object.defineProperty(db, 'exec', { value });
    enableWriteAheadLog(db);
    expect(pragma(db, 'journal_mode')).toBe('wal');
  });

  it('leaves a file that passes the integrity and foreign key checks', async () => {
    const { file, store } = await temporaryStore();
    const lease = await store.createRun(newRun('r1'));
    await store.append({ runId: 'r1', lease, expectedSeq: 1, at: time(1), events: [completed('a')] });
    await store.post('r1', { kind: 'cancel', reason: 'x' }, time(2));
    await store.addProcess('r1', lease, { pid: 1, processStart: '1', step: 'a' });
    const db = new DatabaseSync(file, { readOnly: true });
    onTestFinished(() => db.close());
    expect(pragma(db, 'integrity_check')).toBe('ok');
    expect(db.prepare('PRAGMA foreign_key_check').all()).toEqual([]);
  });

  it('reads concurrently with a writer when opened read-only', async () => {
    const { file, store } = await temporaryStore();
    const lease = await store.createRun(newRun('r1'));
    const reader = await openSqliteStore({ file, readonly: true });
    onTestFinished(() => reader.close());
    expect(await reader.read('r1')).toHaveLength(1);
    await store.append({ runId: 'r1', lease, expectedSeq: 1, at: time(1), events: [completed('a')] });
    expect(await reader.read('r1')).toHaveLength(2);
    expect(await reader.list()).toEqual(await store.list());
    expect(await reader.processes('r1')).toEqual([]);
  });

  it('does not create the file when opened read-only', async () => {
    const file = await temporaryFile();
    await expect(openSqliteStore({ file, readonly: true })).rejects.toMatchObject({ code: 'STORE_FAILED' });
    expect(existsSync(file)).toBe(false);
  });

  it('throws STORE_EMPTY when opened read-only before the first write', async () => {
    const file = await temporaryFile();
    const db = await openDatabase({ file });
    onTestFinished(() => db.close());
    enableWriteAheadLog(db);
    await expect(openSqliteStore({ file, readonly: true })).rejects.toMatchObject({ code: 'STORE_EMPTY' });
  });

  it('can be closed twice, and rejects every use afterwards', async () => {
    const { file, store } = await temporaryStore();
    await store.close();
    await store.close();
    const closed = { code: 'STORE_FAILED', message: `the store ${file} is closed` };
    await expect(store.list()).rejects.toMatchObject(closed);
    await expect(store.createRun(newRun('r1'))).rejects.toMatchObject(closed);
  });
});
