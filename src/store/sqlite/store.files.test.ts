import { copyFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from '@photostructure/sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { completed, newRun, time } from '../samples.conformance.ts';
import { openSqliteStore } from './store.ts';
import { temporaryFile, temporaryStore } from './temporary.conformance.ts';

describe('a store whose files change under an open connection', () => {
  it.each([
    ['deleted', (file: string) => rmSync(file)],
    ['deleted', (file: string) => rmSync(`${file}-wal`)],
    ['truncated', (file: string) => truncateSync(file)],
    ['truncated', (file: string) => truncateSync(`${file}-wal`)],
    [
      'replaced',
      (file: string) => {
        copyFileSync(file, `${file}.copy`);
        renameSync(`${file}.copy`, file);
      },
    ],
    [
      'replaced',
      (file: string) => {
        rmSync(`${file}-wal`);
        writeFileSync(`${file}-wal`, 'x'.repeat(100_000));
      },
    ],
  ])('stops before the next commit, and before the next read: %s, %s', async (what, change) => {
    const { file, store } = await temporaryStore();
    const lease = await store.createRun(newRun('r1'));
    change(file);
    const failure = { code: 'STORE_FAILED', message: expect.stringContaining(`was ${what}`) };
    const batch = { runId: 'r1', lease, expectedSeq: 1, at: time(1), events: [completed('a')] };
    await expect(store.append(batch)).rejects.toMatchObject(failure);
    await expect(store.holdsRun('r1', lease)).rejects.toMatchObject(failure);
    await expect(store.claims.isHeld({ task: 'a', token: 1, runId: 'r1' })).rejects.toMatchObject(failure);
  });

  it('continues while other connections write, checkpoint and close', async () => {
    const { file, store } = await temporaryStore();
    const lease = await store.createRun(newRun('r1'));
    for (let seq = 1; seq < 20; seq++) {
      const other = await openSqliteStore({ file });
      await other.createRun(newRun(`other-${seq}`));
      await other.close();
      await store.append({ runId: 'r1', lease, expectedSeq: seq, at: time(seq), events: [completed('a')] });
    }
    expect(await store.list()).toHaveLength(20);
  });
});

it('a store that is closed has everything in its file, without the write-ahead log', async () => {
  const file = await temporaryFile();
  const store = await openSqliteStore({ file });
  await store.createRun(newRun('r1'));
  await store.close();
  const copy = `${file}.copy`;
  copyFileSync(file, copy);
  const db = new DatabaseSync(copy, { readOnly: true });
  onTestFinished(() => db.close());
  expect(db.prepare('SELECT run_id FROM runs').all()).toEqual([{ run_id: 'r1' }]);
});
