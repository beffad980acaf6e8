import { join } from 'node:path';
import { foldHistory } from '../../dist/engine/history/replay.js';
import { buildGraph } from '../../dist/engine/state/graph.js';
import { openSqliteStore } from '../../dist/index.js';
import { coldAndWarm } from '../lib/contend.mjs';
import { chain } from './workflows.mjs';

// `<steps> <folder> <run>`: from the rows in SQLite to the state that they lead to, every event checked.
const [steps, root, runId] = process.argv.slice(2);
const graph = buildGraph(chain(Number(steps)).model);
const store = await openSqliteStore({ file: join(root, '.reprise', 'state', 'reprise.db'), readonly: true });
let events = 0;
const times = await coldAndWarm(async () => {
  const history = await store.read(runId);
  events = history.length;
  if (foldHistory(graph, history).active.size !== 1) throw new Error('the last step is not under way');
});
await store.close();
process.stdout.write(`${JSON.stringify({ ...times, events })}\n`);
