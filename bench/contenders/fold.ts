import { join } from 'node:path';
import { foldHistory } from '../../src/engine/history/effective.ts';
import { buildGraph } from '../../src/engine/state/graph.ts';
import { openSqliteStore } from '../../src/index.ts';
import { coldAndWarm, contend } from '../lib/contend.ts';
import { chain } from './workflows.ts';

export const methods = {
  /** From the rows in SQLite to the resulting state, with every event validated. */
  async fold(_folder: string, steps: number, root: string, runId: string) {
    const graph = buildGraph(chain(steps).model);
    const file = join(root, '.reprise', 'state', 'reprise.db');
    const store = await openSqliteStore({ file, readonly: true });
    let events = 0;
    const times = await coldAndWarm(async () => {
      const history = await store.read(runId);
      events = history.length;
      if (foldHistory(graph, history).active.size !== 1) throw new Error('the last step is not running');
    });
    await store.close();
    return { ...times, events };
  },
};

await contend(methods);
