import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { completed, newRun, started, time } from '../samples.conformance.ts';
import { enableWriteAheadLog, openDatabase, toStoreFailure } from './connection.ts';
import { migrate } from './migrations.ts';
import { openSqliteStore, storeOn } from './store.ts';
import { temporaryFile, temporaryFolder, temporaryStore } from './temporary.conformance.ts';

const failure = (hint: RegExp) => ({ code: 'STORE_FAILED', hint: expect.stringMatching(hint) });

function emptyWriteAheadLog(file: string): void {
  const db = new DatabaseSync(file);
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  db.close();
}

describe('a store that fails', () => {
  it('reports damage if the file is not a database', async () => {
    const file = await temporaryFile();
    const garbage = 'not a database, but long enough to be taken for one '.repeat(40);
    writeFileSync(file, garbage);
    await expect(openSqliteStore({ file })).rejects.toMatchObject(failure(/restore it from a backup/));
    expect(readFileSync(file, 'utf8')).toBe(garbage);
  });

  it('reports damage if pages of the file were overwritten', async () => {
    const { file, store } = await temporaryStore();
    const events = Array.from({ length: 2000 }, (_, index) => completed('fix', index));
    await store.createRun(newRun('r1', { events }));
    await store.close();
    emptyWriteAheadLog(file);
    writeFileSync(file, readFileSync(file).fill(0xff, 8192));

    const readBack = async () => {
      const damaged = await openSqliteStore({ file });
      onTestFinished(() => damaged.close());
      return damaged.read('r1');
    };
    await expect(readBack()).rejects.toMatchObject(failure(/restore it from a backup/));
  });

  it('reports a wrong path if it is a folder', async () => {
    const file = await temporaryFile();
    mkdirSync(file);
    await expect(openSqliteStore({ file })).rejects.toMatchObject(failure(/check that the path is a file/));
  });

  it('reports a wrong folder if a part of its path is a file', async () => {
    const folder = await temporaryFolder();
    writeFileSync(join(folder, 'state'), '');
    const file = join(folder, 'state', 'deep', 'reprise.db');
    await expect(openSqliteStore({ file })).rejects.toMatchObject(
      failure(/every part of the path is a writable folder/),
    );
  });

  it('reports that it is read-only, and stays readable', async () => {
    const { file, store } = await temporaryStore();
    const lease = await store.createRun(newRun('r1'));
    const reader = await openSqliteStore({ file, readonly: true });
    onTestFinished(() => reader.close());
    const batch = { runId: 'r1', lease, expectedSeq: 1, at: time(1), events: [completed('a')] };
    await expect(reader.append(batch)).rejects.toMatchObject(failure(/read-only/));
    await expect(reader.post('r1', { kind: 'cancel', reason: 'x' }, time(1))).rejects.toMatchObject(
      failure(/read-only/),
    );
    expect(await reader.read('r1')).toHaveLength(1);
    await store.append(batch);
  });

  it('reports that another process holds the lock', async () => {
    const { file } = await temporaryStore();
    const [first, second] = [new DatabaseSync(file), new DatabaseSync(file, { timeout: 0 })];
    onTestFinished(() => {
      first.close();
      second.close();
    });
    first.exec('BEGIN IMMEDIATE');
    let thrown: unknown;
    try {
      second.exec('BEGIN IMMEDIATE');
    } catch (caught) {
      thrown = caught;
    }
    expect(toStoreFailure(file, thrown)).toMatchObject(failure(/another process/));
  });

  it('passes on errors that are not from SQLite', () => {
    const bug = new TypeError('a bug');
    expect(toStoreFailure('x.db', bug)).toBe(bug);
  });

  it('stays readable and consistent when the disk is full, and works again once there is space', async () => {
    const file = await temporaryFile();
    const db = await openDatabase({ file });
    onTestFinished(() => db.close());
    enableWriteAheadLog(db);
    migrate(db, file);
    const store = storeOn(db, { file });
    const lease = await store.createRun(newRun('r1'));
    await store.post('r1', { kind: 'cancel', reason: 'x' }, time(1));
    const consumed = (await store.inbox('r1')).map(entry => entry.id);

    db.exec('PRAGMA max_page_count = 1');
    const events = [completed('a'), completed('b', 'x'.repeat(100_000))];
    const batch = { runId: 'r1', lease, expectedSeq: 1, at: time(2), events, consumed };
    await expect(store.append(batch)).rejects.toMatchObject(failure(/the disk is full/));
    const tooLarge = newRun('r2', { events: [started, ...events] });
    await expect(store.createRun(tooLarge)).rejects.toMatchObject(failure(/the disk is full/));

    expect(await store.read('r1')).toHaveLength(1);
    expect(await store.inbox('r1')).toHaveLength(1);
    expect(await store.find('r')).toMatchObject([{ runId: 'r1' }]);
    const elsewhere = await openSqliteStore({ file });
    onTestFinished(() => elsewhere.close());
    expect(await elsewhere.read('r1')).toHaveLength(1);

    db.exec('PRAGMA max_page_count = 100000');
    await store.append(batch);
    expect(await store.read('r1')).toHaveLength(3);
    expect(await store.inbox('r1')).toEqual([]);
  });
});
