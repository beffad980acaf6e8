import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { coldAndWarm, contend } from '../lib/contend.ts';

/** The minimum cost of a durable step on this machine: SQLite alone, with the same settings. */
function openTable(file: string) {
  const db = new DatabaseSync(file);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
  db.exec('CREATE TABLE steps (seq INTEGER PRIMARY KEY, step TEXT NOT NULL, data TEXT NOT NULL) STRICT');
  return db;
}

export const methods = {
  /** Inserts rows, `rowsPerCommit` in each transaction. */
  async rows(folder: string, rows: number, rowsPerCommit: number) {
    let commits = 0;
    const times = await coldAndWarm(round => {
      const db = openTable(join(folder, `${round}.db`));
      const insert = db.prepare('INSERT INTO steps VALUES (?, ?, ?)');
      const begin = db.prepare('BEGIN IMMEDIATE');
      const commit = db.prepare('COMMIT');
      commits = 0;
      for (let seq = 1; seq <= rows; seq++) {
        if (rowsPerCommit > 1 && seq % rowsPerCommit === 1) begin.run();
        insert.run(seq, `s${seq}`, JSON.stringify({ output: seq }));
        if (rowsPerCommit > 1 && seq % rowsPerCommit === 0) commit.run();
        if (seq % rowsPerCommit === 0) commits++;
      }
      db.close();
    });
    return { ...times, commits };
  },
};

await contend(methods);
