import { readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import {
  type EventStore,
  memoryStore,
  openEngine,
  openSqliteStore,
  type RunResult,
} from '../../src/index.ts';
import { coldAndWarm, contend } from '../lib/contend.ts';
import { chain, type Shape, shapes } from './workflows.ts';

/** A store with code around its methods. */
const around = (
  store: EventStore,
  call: (name: string | symbol, perform: () => unknown) => unknown,
): EventStore =>
  new Proxy(store, {
    get: (target, name) => {
      const method: unknown = Reflect.get(target, name);
      return typeof method === 'function'
        ? (...args: readonly unknown[]) => call(name, () => Reflect.apply(method, target, args))
        : method;
    },
  });

const commits: ReadonlySet<string | symbol> = new Set<keyof EventStore>([
  ...(['createRun', 'acquire', 'renew', 'release'] as const),
  ...(['append', 'addProcess', 'removeProcess', 'post'] as const),
]);

/** A store that counts its commits. */
function counting(store: EventStore) {
  const counts = { commits: 0 };
  const counted = around(store, (name, perform) => {
    if (commits.has(name)) counts.commits++;
    return perform();
  });
  return { counted, counts };
}

/** A store whose methods answer after 2 ms, as a database on another machine would. */
const slow = (store: EventStore) =>
  around(store, async (name, perform) => {
    if (name !== 'close') await new Promise(resolve => setTimeout(resolve, 2));
    return perform();
  });

type StoreKind = 'memory' | 'sqlite';

const openStore = (kind: StoreKind, folder: string) =>
  kind === 'memory' ? memoryStore() : openSqliteStore({ file: join(folder, 'reprise.db') });

function expectCompleted(result: RunResult) {
  if (result.status !== 'completed')
    throw new Error(`the run ended ${result.status}: ${JSON.stringify(result).slice(0, 300)}`);
}

interface PreparedRun {
  readonly runId: string;
}

/** Peak memory in bytes. `process.resourceUsage()` starts with the peak of the process that started this one. */
const peakOfThisProcess = (): number => {
  const [, kilobytes] = /VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
};

export const methods = {
  /** Runs the same workflow several times. */
  async run(folder: string, shape: Shape, steps: number, places: number) {
    const workflow = shapes[shape](steps);
    const { counted, counts } = counting(await openStore('sqlite', folder));
    const { engine, close } = await openEngine({ root: folder, env: {}, store: counted });
    const times = await coldAndWarm(async () => {
      counts.commits = 0;
      expectCompleted(await engine.start({ workflow, maxConcurrentWorkers: places }));
    });
    await close();
    return { ...times, commits: counts.commits };
  },

  /** Runs a workflow once and measures its memory. */
  async scale(folder: string, shape: Shape, steps: number, places: number, kind: StoreKind) {
    const before = process.memoryUsage.rss();
    const began = performance.now();
    const workflow = shapes[shape](steps);
    const definedMs = performance.now() - began;
    const { engine, close } = await openEngine({
      root: folder,
      env: {},
      store: await openStore(kind, folder),
    });
    const started = performance.now();
    expectCompleted(await engine.start({ workflow, maxConcurrentWorkers: places }));
    const ms = performance.now() - started;
    await close();
    const peakRss = peakOfThisProcess();
    return { definedMs, ms, peakRss, rssPerStep: (peakRss - before) / steps };
  },

  /** Runs of four steps, all at the same time, on a store that answers after 2 ms. */
  async many(folder: string, runs: number) {
    const workflow = shapes.chain(4);
    const { engine, close } = await openEngine({ root: folder, env: {}, store: slow(memoryStore()) });
    const start = async () => expectCompleted(await engine.start({ workflow }));
    await Promise.all(Array.from({ length: 20 }, start));
    const before = process.cpuUsage();
    const began = performance.now();
    await Promise.all(Array.from({ length: runs }, start));
    const { user, system } = process.cpuUsage(before);
    const ms = performance.now() - began;
    await close();
    return { ms, cpuMsPerRun: (user + system) / 1000 / runs };
  },

  /** Starts a run and kills it in the middle of its last step. */
  async prepare(_folder: string, steps: number, root: string): Promise<PreparedRun> {
    const { engine } = await openEngine({
      root,
      env: {},
      observe: observation => {
        if (observation.kind !== 'events') return;
        const [first] = observation.events;
        if (first?.seq !== 1) return;
        const prepared: PreparedRun = { runId: first.runId };
        writeSync(1, JSON.stringify(prepared));
      },
    });
    await engine.start({ workflow: chain(steps, { dieLast: true }) });
    throw new Error('the last step did not kill the process');
  },
};

await contend(methods);
