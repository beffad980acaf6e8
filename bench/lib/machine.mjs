import { cpus, totalmem, type } from 'node:os';
import { inChild } from './child.mjs';
import { bytes } from './format.mjs';

/** What the figures depend on. */
export function machine() {
  const { version } = inChild('floor', 'sqliteVersion');
  const [cpu] = cpus();
  return `${cpus().length} cores (${cpu?.model.trim() ?? 'unknown'}), ${bytes(totalmem())}, ${type()}, Node ${process.versions.node}, SQLite ${version}`;
}
