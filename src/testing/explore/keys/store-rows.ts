import { existsSync } from 'node:fs';
import { type Database, openDatabase } from '../../../store/sqlite/connection.ts';
import type { Fact } from './shared-state.ts';

type Row = Readonly<Record<string, unknown>>;

/** What a row is called, which keys stand for it, and which of its columns count. */
interface Reading {
  readonly name: string;
  readonly keys: readonly string[];
  readonly columns?: readonly string[];
  readonly besides?: readonly string[];
}

const leaseColumns = ['epoch', 'incarnation', 'host', 'pid', 'process_start', 'expires_at'];

const ofRun = (row: Row): string => String(row['run_id']);

const readings: Readonly<Record<string, (row: Row) => readonly Reading[]>> = {
  runs: row => [
    { name: `the lease of run ${ofRun(row)}`, keys: [`lease:${ofRun(row)}`], columns: leaseColumns },
    { name: `the status of run ${ofRun(row)}`, keys: [`status:${ofRun(row)}`], besides: leaseColumns },
  ],
  events: row => [
    { name: `event ${String(row['seq'])} of run ${ofRun(row)}`, keys: [`store:${ofRun(row)}`] },
  ],
  inbox: row => [
    { name: `message ${String(row['id'])} for run ${ofRun(row)}`, keys: [`inbox:${ofRun(row)}`] },
  ],
  claims: row => [{ name: `the claim of ${String(row['task'])}`, keys: [`claim:${String(row['task'])}`] }],
  workers: row => [{ name: `worker ${String(row['name'])}`, keys: [`worker:${String(row['incarnation'])}`] }],
  // Of a run, for whoever has its lease.
  processes: () => [],
};

/** The rows of a store, with the keys that stand for them. */
export class StoreRows {
  readonly #file: string;
  #database: Database | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  async facts(): Promise<readonly (readonly [string, Fact])[]> {
    if (!this.#database && !existsSync(this.#file)) return [];
    this.#database ??= await openDatabase({ file: this.#file, readonly: true });
    const database = this.#database;
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all() as Row[];
    return tables
      .map(({ name }) => String(name))
      .filter(table => !table.startsWith('sqlite_'))
      .flatMap(table => {
        const rows = database.prepare(`SELECT * FROM "${table}"`).all() as Row[];
        const readingsOf = readings[table] ?? unknownTable(table);
        return rows.flatMap(row => readingsOf(row).map(reading => factOf(row, reading)));
      });
  }

  close(): void {
    this.#database?.close();
    this.#database = undefined;
  }
}

const unknownTable = (table: string) => (row: Row) => [
  { name: `${table} ${JSON.stringify(Object.values(row)[0])}`, keys: [`${table}:`] },
];

function factOf(row: Row, { name, keys, columns, besides = [] }: Reading): readonly [string, Fact] {
  const counted = columns ?? Object.keys(row).filter(column => !besides.includes(column));
  return [name, { keys, value: JSON.stringify(counted.map(column => row[column])) }];
}
