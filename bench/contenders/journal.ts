import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openEngine } from '../../src/index.ts';
import { openRunJournal } from '../../src/project/journal/run-journal.ts';
import { locateState } from '../../src/project/state.ts';
import { contend } from '../lib/contend.ts';
import { median } from '../lib/stats.ts';
import { type Shape, shapes } from './workflows.ts';

const surroundings = {
  env: process.env,
  err: (text: string) => process.stderr.write(text),
  now: () => Date.now(),
};

/** Everything that a run needs: a store, an engine, and optionally a journal. */
async function open(root: string, isJournalled: boolean) {
  mkdirSync(root, { recursive: true });
  const env = {};
  const state = locateState({ root, env, given: join(root, '.reprise', 'state') });
  const project = { root, env, state, stateDir: state.folder, commandSuffix: '' };
  const journal = isJournalled
    ? openRunJournal({ io: surroundings, project, command: { command: 'run', args: ['chain'] } })
    : undefined;
  const { engine, close } = await openEngine({
    root,
    env,
    state,
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

const sizeOf = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map(name => statSync(join(folder, name)))
    .filter(stats => stats.isFile())
    .reduce((sum, { size }) => sum + size, 0);

const workflowsFile = fileURLToPath(new URL('./workflows.js', import.meta.url));
const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

interface Flow {
  readonly shape: Shape;
  readonly steps: number;
  readonly record: boolean;
}

/** Time of the command in a new project. */
function runCommand(root: string, { shape, steps, record }: Flow) {
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

/** Milliseconds of every warm round. */
type Rounds = Record<'plain' | 'journalled', number[]>;

const inTurn = (round: number) =>
  round % 2 === 0 ? (['plain', 'journalled'] as const) : (['journalled', 'plain'] as const);

/** Compares all rounds, and adjacent runs only, because the speed of the disk drifts. */
const compared = ({ plain, journalled }: Rounds) => ({
  plainMs: median(plain),
  journalMs: median(journalled),
  costOfPairs: median(plain.map((ms, round) => (journalled[round] ?? 0) / ms)) - 1,
});

export const methods = {
  /** The cost for users, alternating between `record: true` and no recording. */
  async command(folder: string, shape: Shape, steps: number, rounds: number) {
    const times: Rounds = { plain: [], journalled: [] };
    for (let round = 0; round <= rounds; round++) {
      for (const name of inTurn(round)) {
        const record = name === 'journalled';
        const took = runCommand(join(folder, `${name}-${round}`), { shape, steps, record });
        if (round > 0) times[name].push(took);
      }
    }
    return compared(times);
  },
  /** Alternates between runs with and without a journal in one warm process. */
  async cost(folder: string, shape: Shape, steps: number, rounds: number) {
    const workflow = shapes[shape](steps);
    const times: Rounds = { plain: [], journalled: [] };
    const work: Rounds = { plain: [], journalled: [] };
    let bytes = 0;
    for (let round = 0; round <= rounds; round++) {
      for (const name of inTurn(round)) {
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
      ...compared(times),
      cpuMs: median(work.journalled) - median(work.plain),
      bytes,
    };
  },
};

await contend(methods);
