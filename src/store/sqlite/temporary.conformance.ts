import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openSqliteStore } from './store.ts';

/** Creates a folder that is removed when the test ends. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'reprise-store-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Path of a store that does not exist yet. */
export const temporaryFile = async (): Promise<string> => join(await temporaryFolder(), 'reprise.db');

/** Opens a store in a new file, closed when the test ends. */
export async function temporaryStore() {
  const file = await temporaryFile();
  const store = await openSqliteStore({ file });
  onTestFinished(() => store.close());
  return { file, store };
}
