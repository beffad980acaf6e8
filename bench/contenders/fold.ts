import { join } from 'node:path';
import { foldHistory } from '../../src/engine/history/replay.ts';
import { buildGraph } from '../../src/engine/state/graph.ts';
import { openSqliteStore } from '../../src/index.ts';
import { coldAndWarm } from '../lib/contend.ts';
import { chain } from './workflows.ts';

// `<steps> <folder> <run>`: from the rows in SQLite to the resulting state, with every event validated.
const [steps, root, runId] = process.argv.slice(2);
const graph = buildGraph(chain(Number(steps)).model);
const store = await openSqliteStore({ file: join(root, '.reprise', 'state', 'reprise.db'), readonly: true });
let events = 0;
const times = await coldAndWarm(async () => {
  const history = await store.read(runId);
  events = history.length;
  if (foldHistory(graph, history).active.size !== 1) throw new Error('the last step is not running');
});
await store.close();
process.stdout.write(`${JSON.stringify({ ...times, events })}\n`);
