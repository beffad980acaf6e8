import { setMaxListeners } from 'node:events';
import { join } from 'node:path';
import { Annotation, END, entrypoint, Send, START, StateGraph, task } from '@langchain/langgraph';
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite';
import Database from 'better-sqlite3';
import { coldAndWarm, contend } from '../lib/contend.ts';

setMaxListeners(0);

/** A checkpointer that counts its commits. */
class CountingSaver extends SqliteSaver {
  commits = 0;

  override put(...args: Parameters<SqliteSaver['put']>) {
    this.commits++;
    return super.put(...args);
  }

  override putWrites(...args: Parameters<SqliteSaver['putWrites']>) {
    this.commits++;
    return super.putWrites(...args);
  }
}

interface Workload<Input, Output> {
  readonly folder: string;
  compile(checkpointer: SqliteSaver): { invoke(input: Input, options: object): Promise<Output> };
  readonly input: Input;
  expected(result: Output): boolean;
  readonly maxConcurrency?: number;
}

async function measure<Input, Output>(workload: Workload<Input, Output>) {
  const { folder, compile, input, expected, maxConcurrency } = workload;
  let commits = 0;
  const times = await coldAndWarm(async round => {
    const db = new Database(join(folder, `${round}.db`));
    // The same durability as the other contenders.
    db.pragma('synchronous = FULL');
    const saver = new CountingSaver(db);
    const result = await compile(saver).invoke(input, {
      durability: 'sync',
      recursionLimit: 1_000_000,
      configurable: { thread_id: 'bench' },
      ...(maxConcurrency ? { maxConcurrency } : {}),
    });
    if (!expected(result)) throw new Error(`LangGraph gave ${JSON.stringify(result)?.slice(0, 200)}`);
    if (db.pragma('synchronous', { simple: true }) !== 2) throw new Error('LangGraph is not durable');
    commits = saver.commits;
    db.close();
  });
  return { ...times, commits };
}

const addOne = task('add one', async (value: number) => value + 1);

export const methods = {
  /** One node in a loop: one checkpoint per step. */
  'sequence-graph': (folder: string, steps: number) => {
    const State = Annotation.Root({ count: Annotation<number>() });
    const graph = new StateGraph(State)
      .addNode('step', async ({ count }) => ({ count: count + 1 }))
      .addEdge(START, 'step')
      .addConditionalEdges('step', ({ count }) => (count < steps ? 'step' : END));
    const compile = (checkpointer: SqliteSaver) => graph.compile({ checkpointer });
    return measure({ folder, compile, input: { count: 0 }, expected: ({ count }) => count === steps });
  },

  /** The functional API: tasks in sequence, each one persisted. */
  'sequence-tasks': (folder: string, steps: number) => {
    const compile = (checkpointer: SqliteSaver) =>
      entrypoint({ name: 'sequence', checkpointer }, async (count: number) => {
        let value = 0;
        for (let step = 0; step < count; step++) value = await addOne(value);
        return value;
      });
    return measure({ folder, compile, input: steps, expected: value => value === steps });
  },

  'fan-out-graph': (folder: string, workers: number, maxConcurrency: number) => {
    const State = Annotation.Root({
      workers: Annotation<number>(),
      outputs: Annotation<readonly number[]>({ reducer: (all, more) => all.concat(more), default: () => [] }),
      total: Annotation<number>(),
    });
    const graph = new StateGraph(State)
      .addNode('plan', async () => ({ workers }))
      .addNode('work', async ({ index }: { readonly index: number }) => ({ outputs: [index] }))
      .addNode('join', async ({ outputs }) => ({ total: outputs.length }))
      .addEdge(START, 'plan')
      .addConditionalEdges('plan', state =>
        Array.from({ length: state.workers }, (_, index) => new Send('work', { index })),
      )
      .addEdge('work', 'join')
      .addEdge('join', END);
    const compile = (checkpointer: SqliteSaver) => graph.compile({ checkpointer });
    return measure({
      folder,
      compile,
      input: { workers: 0 },
      expected: ({ total }) => total === workers,
      maxConcurrency,
    });
  },

  'fan-out-tasks': (folder: string, workers: number, maxConcurrency: number) => {
    const compile = (checkpointer: SqliteSaver) =>
      entrypoint({ name: 'fan-out', checkpointer }, async (count: number) => {
        const outputs = await Promise.all(Array.from({ length: count }, (_, index) => addOne(index)));
        return outputs.length;
      });
    return measure({ folder, compile, input: workers, expected: total => total === workers, maxConcurrency });
  },
};

await contend(methods);
