import { readFileSync } from 'node:fs';
import { DatabaseSync } from '@photostructure/sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { completed, newRun, owner, started, time } from '../samples.conformance.ts';
import { latestVersion } from './migrations.ts';
import { openSqliteStore } from './store.ts';
import { temporaryFile } from './temporary.conformance.ts';

/** Version 1 as released, with rows in every table. Must never change. */
const version1 = `
  PRAGMA journal_mode = WAL;
  CREATE TABLE runs (
    number INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, workflow TEXT NOT NULL, status TEXT NOT NULL,
    started_at TEXT NOT NULL, ended_at TEXT, epoch INTEGER NOT NULL,
    incarnation TEXT, host TEXT, pid INTEGER, process_start TEXT, expires_at TEXT
  ) STRICT;
  CREATE INDEX runs_by_start ON runs (started_at);
  CREATE TABLE events (
    run_id TEXT NOT NULL REFERENCES runs (run_id), seq INTEGER NOT NULL, at TEXT NOT NULL, type TEXT NOT NULL,
    step TEXT, worker INTEGER, attempt INTEGER, data TEXT NOT NULL, PRIMARY KEY (run_id, seq)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE inbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL REFERENCES runs (run_id),
    at TEXT NOT NULL, message TEXT NOT NULL
  ) STRICT;
  CREATE INDEX inbox_by_run ON inbox (run_id);
  PRAGMA application_id = 1383101043;
  PRAGMA user_version = 1;

  INSERT INTO runs VALUES (1, 'old', 'fix', 'completed', '${time(0)}', '${time(9)}', 3, NULL, NULL, NULL, NULL, NULL);
  INSERT INTO runs VALUES
    (2, 'held', 'fix', 'running', '${time(1)}', NULL, 2, 'ann', 'localhost', 4711, '1042', '${time(10_000)}');
  INSERT INTO events VALUES ('held', 1, '${time(1)}', 'run.started', NULL, NULL, NULL, '${JSON.stringify(started.data)}');
  INSERT INTO events VALUES ('held', 2, '${time(2)}', 'step.completed', 'plan', NULL, 1, '{"output":"done"}');
  INSERT INTO inbox VALUES (5, 'held', '${time(3)}', '{"kind":"cancel","reason":"enough"}');
`;

/** Version 2 as released, with a row in the table that it added. Must never change. */
const version2 = `
  ${version1}
  CREATE TABLE processes (
    run_id TEXT NOT NULL REFERENCES runs (run_id), pid INTEGER NOT NULL, process_start TEXT NOT NULL,
    step TEXT NOT NULL, PRIMARY KEY (run_id, pid)
  ) STRICT, WITHOUT ROWID;
  PRAGMA user_version = 2;

  INSERT INTO processes VALUES ('held', 7, '70', 'fix');
`;

async function fileWith(sql: string): Promise<string> {
  const file = await temporaryFile();
  const db = new DatabaseSync(file);
  db.exec(sql);
  db.close();
  return file;
}

async function opened(file: string) {
  const store = await openSqliteStore({ file });
  onTestFinished(() => store.close());
  return store;
}

const query = (file: string, sql: string): unknown[] => {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return db.prepare(sql).all();
  } finally {
    db.close();
  }
};

describe('migrations', () => {
  it.each([
    [1, version1],
    [2, version2],
  ])('keep every row of a store of version %i', async (version, sql) => {
    const store = await opened(await fileWith(sql));
    const holder = { ...owner('ann'), epoch: 2, expiresAt: time(10_000) };
    const held = { runId: 'held', status: 'running', startedAt: time(1), endedAt: null, owner: holder };
    const old = { runId: 'old', status: 'completed', startedAt: time(0), endedAt: time(9), owner: null };
    expect(await store.list()).toEqual([
      { ...held, workflow: 'fix' },
      { ...old, workflow: 'fix' },
    ]);
    expect(await store.read('held')).toEqual([
      { seq: 1, runId: 'held', at: time(1), ...started },
      { seq: 2, runId: 'held', at: time(2), ...completed('plan', 'done') },
    ]);
    expect(await store.inbox('held')).toEqual([
      { id: 5, at: time(3), message: { kind: 'cancel', reason: 'enough' } },
    ]);
    const child = { pid: 7, processStart: '70', step: 'fix' };
    expect(await store.processes('held')).toEqual(version === 1 ? [] : [child]);
  });

  it('add the features of later versions to a store of version 1', async () => {
    const store = await opened(await fileWith(version1));
    const lease = { epoch: 2, incarnation: 'ann' };
    await store.addProcess('held', lease, { pid: 7, processStart: '70', step: 'fix' });
    expect(await store.processes('held')).toHaveLength(1);
    await store.append({
      runId: 'held',
      lease,
      expectedSeq: 2,
      at: time(4),
      events: [completed('fix')],
      consumed: [5],
    });
    expect(await store.inbox('held')).toEqual([]);
  });

  it('add claims, the filter by status and workers to a store of version 2', async () => {
    const store = await opened(await fileWith(version2));
    expect(await store.list({ status: 'completed' })).toMatchObject([{ runId: 'old' }]);
    const request = { task: 'a', seen: 0, version: 'v1', by: 'ann', at: time(4) };
    expect(await store.claims.take({ ...request, runId: 'held' })).toMatchObject({ kind: 'claimed' });
    await expect(store.claims.take({ ...request, runId: 'old' })).rejects.toMatchObject({
      code: 'RUN_ENDED',
    });
    const revision = await store.claims.revision();
    await store.release('held', { epoch: 2, incarnation: 'ann' }, 'failed');
    expect(await store.claims.revision()).toBe(revision + 1);
    expect(await store.workers.list()).toEqual([]);
  });

  it.each([
    [1, version1],
    [2, version2],
  ])('give a store of version %i and a new one the same tables', async (_, sql) => {
    const [old, fresh] = [await fileWith(sql), await temporaryFile()];
    const schema = async (file: string) => {
      await (await opened(file)).close();
      const rows = query(file, 'SELECT name, sql FROM sqlite_schema ORDER BY name') as {
        name: string;
        sql: string | null;
      }[];
      return rows.map(({ name, sql }) => ({ name, sql: sql?.replaceAll(/\s+/g, ' ') }));
    };
    expect(await schema(old)).toEqual(await schema(fresh));
    expect(query(old, 'PRAGMA user_version')).toEqual([{ user_version: latestVersion }]);
  });

  it('run only once', async () => {
    const file = await fileWith(version1);
    const first = await opened(file);
    await first.addProcess(
      'held',
      { epoch: 2, incarnation: 'ann' },
      { pid: 7, processStart: '70', step: 'fix' },
    );
    const second = await opened(file);
    expect(await second.processes('held')).toHaveLength(1);
  });

  it('refuse a store of a newer version and do not change it', async () => {
    const file = await fileWith(`${version1}; PRAGMA user_version = ${latestVersion + 1}`);
    const before = readFileSync(file);
    for (const readonly of [false, true]) {
      await expect(openSqliteStore({ file, readonly })).rejects.toMatchObject({
        code: 'STORE_NEWER',
        hint: expect.stringContaining('upgrade'),
      });
    }
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it.each(['', '; PRAGMA user_version = 99'])('refuse the database of another program%s', async version => {
    const file = await fileWith(
      `CREATE TABLE photos (name TEXT); INSERT INTO photos VALUES ('cat')${version}`,
    );
    const before = readFileSync(file);
    await expect(openSqliteStore({ file })).rejects.toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringContaining('not a Reprise store'),
    });
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it('need a writer: a reader refuses a store of version 1', async () => {
    const file = await fileWith(version1);
    await expect(openSqliteStore({ file, readonly: true })).rejects.toMatchObject({
      code: 'STORE_OLDER',
      hint: expect.stringContaining('open it for writing once'),
    });
    await (await opened(file)).createRun(newRun('new'));
    const reader = await openSqliteStore({ file, readonly: true });
    onTestFinished(() => reader.close());
    expect(await reader.list()).toHaveLength(3);
  });
});
