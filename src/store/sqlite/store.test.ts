import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeEventStore } from '../event-store.conformance.ts';
import { openSqliteStore } from './store.ts';

describeEventStore('the SQLite store', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reprise-store-'));
  const file = join(folder, 'state', 'reprise.db');
  const store = await openSqliteStore({ file });
  return {
    store,
    reopen: () => openSqliteStore({ file }),
    cleanup: async () => {
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
});
