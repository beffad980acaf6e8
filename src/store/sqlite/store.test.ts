import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeEventStore } from '../event-store.conformance.ts';
import type { EventStore } from '../port.ts';
import { openSqliteStore } from './store.ts';

describeEventStore('the SQLite store', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reprise-store-'));
  const file = join(folder, 'state', 'reprise.db');
  const store = await openSqliteStore({ file });
  const others: EventStore[] = [];
  return {
    store,
    reopen: () => openSqliteStore({ file }),
    inProject: async project => {
      const other = await openSqliteStore({ file, project });
      others.push(other);
      return other;
    },
    cleanup: async () => {
      for (const each of [...others, store]) await each.close();
      await rm(folder, { recursive: true });
    },
  };
});
