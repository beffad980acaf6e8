import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { openRunJournal } from '../../dist/commands/journal/run-journal.js';
import { openEngine } from '../../dist/index.js';
import { contend } from '../lib/contend.mjs';
import { median } from '../lib/stats.mjs';
import { shapes } from './workflows.mjs';

const surroundings = { env: process.env, err: text => process.stderr.write(text), now: () => Date.now() };

/** What a run has for itself: a store, an engine, and a journal if it keeps one. */
async function open(root, isJournalled) {
  mkdirSync(root, { recursive: true });
  const project = { root, stateDir: join(root, '.reprise', 'state'), commandSuffix: '' };
  const journal = isJournalled
    ? openRunJournal({ io: surroundings, project, command: { command: 'run', args: ['chain'] } })
    : undefined;
  const { engine, close } = await openEngine({
    root,
    env: {},
    ...(journal ? { host: journal.host } : {}),
  });
  return {
    engine,
    folder: join(project.stateDir, 'journal'),
    close: async () => {
      await close();
      await journal?.close(0);
    },
  };
}

const sizeOf = folder =>
  readdirSync(folder, { recursive: true })
    .map(name => statSync(join(folder, name)))
    .filter(stats => stats.isFile())
    .reduce((sum, { size }) => sum + size, 0);

await contend({
  /** `<shape> <steps> <rounds>`: with a journal and without one, in turn, in one process that is warm. */
  async cost({ folder, args: [shape, steps, rounds] }) {
    const workflow = shapes[shape](Number(steps));
    const times = { plain: [], journalled: [] };
    const work = { plain: [], journalled: [] };
    let bytes = 0;
    for (let round = 0; round <= Number(rounds); round++) {
      for (const name of round % 2 === 0 ? ['plain', 'journalled'] : ['journalled', 'plain']) {
        const opened = await open(join(folder, `${name}-${round}`), name === 'journalled');
        const cpuBefore = process.cpuUsage();
        const before = performance.now();
        const { status } = await opened.engine.start({ workflow, maxConcurrentWorkers: 10 });
        const took = performance.now() - before;
        const { user, system } = process.cpuUsage(cpuBefore);
        await opened.close();
        if (status !== 'completed') throw new Error(`the run ended ${status}`);
        if (name === 'journalled') bytes = sizeOf(opened.folder);
        // The first round is cold.
        if (round === 0) continue;
        times[name].push(took);
        work[name].push((user + system) / 1000);
      }
    }
    return {
      plainMs: median(times.plain),
      journalMs: median(times.journalled),
      // Of runs that came right after each other: the disk is never the same for long.
      costOfPairs: median(times.plain.map((plain, round) => times.journalled[round] / plain)) - 1,
      cpuMs: median(work.journalled) - median(work.plain),
      plainCpuMs: median(work.plain),
      bytes,
    };
  },
});
