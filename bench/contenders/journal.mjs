import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openEngine } from '../../dist/index.js';
import { openRunJournal } from '../../dist/project/journal/run-journal.js';
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

const workflowsFile = fileURLToPath(new URL('./workflows.mjs', import.meta.url));
const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** How long the command takes, from a fresh project to its end. */
function runCommand(root, { shape, steps, record }) {
  mkdirSync(root, { recursive: true });
  writeFileSync(join(root, 'reprise.yaml'), `record: ${record}\n`);
  writeFileSync(
    join(root, 'flow.mjs'),
    `import { shapes } from ${JSON.stringify(workflowsFile)};\nexport default shapes.${shape}(${steps});\n`,
  );
  const before = performance.now();
  const { status, stderr } = spawnSync(process.execPath, [cli, 'run', 'flow.mjs'], {
    cwd: root,
    encoding: 'utf8',
  });
  const took = performance.now() - before;
  if (status !== 0) throw new Error(stderr);
  if (existsSync(join(root, '.reprise', 'state', 'journal')) !== record)
    throw new Error(`with record: ${record} there is ${record ? 'no' : 'a'} journal`);
  return took;
}

await contend({
  /** `<shape> <steps> <rounds>`: what a user sees of it, with `record: true` and without, in turn. */
  async command({ folder, args: [shape, steps, rounds] }) {
    const times = { plain: [], journalled: [] };
    for (let round = 0; round <= Number(rounds); round++) {
      for (const name of round % 2 === 0 ? ['plain', 'journalled'] : ['journalled', 'plain']) {
        const record = name === 'journalled';
        const took = runCommand(join(folder, `${name}-${round}`), { shape, steps, record });
        if (round > 0) times[name].push(took);
      }
    }
    return {
      plainMs: median(times.plain),
      journalMs: median(times.journalled),
      costOfPairs: median(times.plain.map((plain, round) => times.journalled[round] / plain)) - 1,
    };
  },
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
