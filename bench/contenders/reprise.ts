import { writeSync } from 'node:fs';
import { join } from 'node:path';
import { memoryStore, openEngine, openSqliteStore } from '../../src/index.ts';
import { coldAndWarm, contend } from '../lib/contend.ts';
import { chain, shapes } from './workflows.ts';

/** A store that counts its commits. */
function counting(store) {
  const counts = { commits: 0 };
  const counted = { ...store };
  for (const method of [
    'createRun',
    'acquire',
    'renew',
    'release',
    'append',
    'addProcess',
    'removeProcess',
    'post',
  ]) {
    counted[method] = (...args) => {
      counts.commits++;
      return store[method](...args);
    };
  }
  return { counted, counts };
}

/** A store whose methods answer after 2 ms, as a database on another machine would. */
const slow = store =>
  Object.fromEntries(
    Object.entries(store).map(([name, method]) => [
      name,
      name === 'close' || typeof method !== 'function'
        ? method
        : async (...args) => {
            await new Promise(resolve => setTimeout(resolve, 2));
            return method(...args);
          },
    ]),
  );

const openStore = (kind, folder) =>
  kind === 'memory' ? memoryStore() : openSqliteStore({ file: join(folder, 'reprise.db') });

function expectStatus(result, status) {
  if (result.status !== status)
    throw new Error(`the run ended ${result.status}: ${JSON.stringify(result).slice(0, 300)}`);
}

await contend({
  /** `<shape> <steps> <places>`: runs the same workflow several times. */
  async run({ folder, args: [shape, steps, places] }) {
    const workflow = shapes[shape](Number(steps));
    const { counted, counts } = counting(await openStore('sqlite', folder));
    const { engine, close } = await openEngine({ root: folder, env: {}, store: counted });
    const times = await coldAndWarm(async () => {
      counts.commits = 0;
      expectStatus(await engine.start({ workflow, maxConcurrentWorkers: Number(places) }), 'completed');
    });
    await close();
    return { ...times, commits: counts.commits };
  },

  /** `<shape> <steps> <places> <store>`: runs it once and measures its memory. */
  async scale({ folder, args: [shape, steps, places, kind] }) {
    const before = process.memoryUsage.rss();
    const began = performance.now();
    const workflow = shapes[shape](Number(steps));
    const definedMs = performance.now() - began;
    const { engine, close } = await openEngine({
      root: folder,
      env: {},
      store: await openStore(kind, folder),
    });
    const started = performance.now();
    expectStatus(await engine.start({ workflow, maxConcurrentWorkers: Number(places) }), 'completed');
    const ms = performance.now() - started;
    await close();
    const peakRss = process.resourceUsage().maxRSS * 1024;
    return { definedMs, ms, peakRss, rssPerStep: (peakRss - before) / Number(steps) };
  },

  /** `<runs>`: runs of four steps, all at the same time, on a store that answers after 2 ms. */
  async many({ folder, args: [runs] }) {
    const workflow = shapes.chain(4);
    const { engine, close } = await openEngine({ root: folder, env: {}, store: slow(memoryStore()) });
    const start = async () => expectStatus(await engine.start({ workflow }), 'completed');
    await Promise.all(Array.from({ length: 20 }, start));
    const before = process.cpuUsage();
    const began = performance.now();
    await Promise.all(Array.from({ length: Number(runs) }, start));
    const { user, system } = process.cpuUsage(before);
    const ms = performance.now() - began;
    await close();
    return { ms, cpuMsPerRun: (user + system) / 1000 / Number(runs) };
  },

  /** `<steps> <folder>`: starts a run and kills it in the middle of its last step. */
  async prepare({ args: [steps, root] }) {
    const { engine } = await openEngine({
      root,
      env: {},
      observe: ({ kind, events }) => {
        if (kind === 'events' && events[0].seq === 1)
          writeSync(1, JSON.stringify({ runId: events[0].runId }));
      },
    });
    await engine.start({ workflow: chain(Number(steps), { dieLast: true }) });
  },
});
