import { setMaxListeners } from 'node:events';
import { join } from 'node:path';
import { Annotation, END, entrypoint, Send, START, StateGraph, task } from '@langchain/langgraph';
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite';
import Database from 'better-sqlite3';
import { coldAndWarm, contend } from '../lib/contend.ts';

setMaxListeners(0);

/** A checkpointer with the same durability that counts its commits. */
function openSaver(file) {
  const db = new Database(file);
  db.pragma('synchronous = FULL');
  const saver = new SqliteSaver(db);
  const counts = { commits: 0 };
  for (const method of ['put', 'putWrites']) {
    const write = saver[method].bind(saver);
    saver[method] = (...args) => {
      counts.commits++;
      return write(...args);
    };
  }
  return { db, saver, counts };
}

async function measure({ folder, compile, input, expected, maxConcurrency }) {
  let commits = 0;
  const times = await coldAndWarm(async round => {
    const { db, saver, counts } = openSaver(join(folder, `${round}.db`));
    const result = await compile(saver).invoke(input, {
      durability: 'sync',
      recursionLimit: 1_000_000,
      configurable: { thread_id: 'bench' },
      ...(maxConcurrency ? { maxConcurrency } : {}),
    });
    if (!expected(result)) throw new Error(`LangGraph gave ${JSON.stringify(result)?.slice(0, 200)}`);
    if (db.pragma('synchronous', { simple: true }) !== 2) throw new Error('LangGraph is not durable');
    commits = counts.commits;
    db.close();
  });
  return { ...times, commits };
}

const addOne = task('add one', async value => value + 1);

await contend({
  /** One node in a loop: one checkpoint per step. */
  'sequence-graph': ({ folder, args }) => {
    const steps = Number(args[0]);
    const State = Annotation.Root({ count: Annotation() });
    const graph = new StateGraph(State)
      .addNode('step', async ({ count }) => ({ count: count + 1 }))
      .addEdge(START, 'step')
      .addConditionalEdges('step', ({ count }) => (count < steps ? 'step' : END));
    const compile = checkpointer => graph.compile({ checkpointer });
    return measure({ folder, compile, input: { count: 0 }, expected: ({ count }) => count === steps });
  },

  /** The functional API: tasks in sequence, each one persisted. */
  'sequence-tasks': ({ folder, args }) => {
    const steps = Number(args[0]);
    const compile = checkpointer =>
      entrypoint({ name: 'sequence', checkpointer }, async count => {
        let value = 0;
        for (let step = 0; step < count; step++) value = await addOne(value);
        return value;
      });
    return measure({ folder, compile, input: steps, expected: value => value === steps });
  },

  'fan-out-graph': ({ folder, args }) => {
    const [workers, maxConcurrency] = args.map(Number);
    const State = Annotation.Root({
      workers: Annotation(),
      outputs: Annotation({ reducer: (all, more) => all.concat(more), default: () => [] }),
      total: Annotation(),
    });
    const graph = new StateGraph(State)
      .addNode('plan', async () => ({ workers }))
      .addNode('work', async ({ index }) => ({ outputs: [index] }))
      .addNode('join', async ({ outputs }) => ({ total: outputs.length }))
      .addEdge(START, 'plan')
      .addConditionalEdges('plan', state =>
        Array.from({ length: state.workers }, (_, index) => new Send('work', { index })),
      )
      .addEdge('work', 'join')
      .addEdge('join', END);
    const compile = checkpointer => graph.compile({ checkpointer });
    const expected = ({ total }) => total === workers;
    return measure({ folder, compile, input: { workers: 0 }, expected, maxConcurrency });
  },

  'fan-out-tasks': ({ folder, args }) => {
    const [workers, maxConcurrency] = args.map(Number);
    const compile = checkpointer =>
      entrypoint({ name: 'fan-out', checkpointer }, async count => {
        const outputs = await Promise.all(Array.from({ length: count }, (_, index) => addOne(index)));
        return outputs.length;
      });
    return measure({ folder, compile, input: workers, expected: total => total === workers, maxConcurrency });
  },
});
