import { cpus, totalmem, type } from 'node:os';
import { DatabaseSync } from '@photostructure/sqlite';
import { bytes } from './format.ts';

/** Describes the machine and the versions that the figures depend on. */
export function machine(): string {
  const { version } = new DatabaseSync(':memory:').prepare('SELECT sqlite_version() AS version').get() as {
    version: string;
  };
  const [cpu] = cpus();
  return `${cpus().length} cores (${cpu?.model.trim() ?? 'unknown'}), ${bytes(totalmem())}, ${type()}, Node ${process.versions.node}, SQLite ${version}`;
}
