import { expect, it } from 'vitest';
import type { RunningCli } from '../e2e/run-inline.ts';
import { manyTasks, nothingLeft, type WorkerProject, workerProject } from '../e2e/worker-project.ts';
import { randomFrom } from '../support/random.ts';
import { rounds } from '../support/rounds.ts';

const workers = 4;
const total = rounds(200);
const tasks = manyTasks(total);
const seed = Number(process.env['SOAK_SEED'] ?? Date.now() % 1_000_000);

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms));

/** Leaves a child process that outlives the worker unless Reprise stops it. */
const agent = `
  script:
    - run: (setsid sleep 1000 >/dev/null 2>&1 &) ; echo "$REPRISE_TASK" > "$REPRISE_TASK.txt"
    - say: <next>land</next>
`;

interface Crew {
  readonly at: (RunningCli | undefined)[];
  /** Exit codes and output of workers that failed without being killed. */
  readonly deaths: string[];
  /** Lines of output about failures. Every task can succeed, so there must be none. */
  readonly trouble: string[];
  /** Aborted when the test times out. */
  readonly signal: AbortSignal;
}

/** Runs a worker, and replaces it whenever it is killed, until one ends by itself. */
async function keepWorkerRunning(project: WorkerProject, crew: Crew, place: number): Promise<void> {
  while (!crew.signal.aborted) {
    const worker = project.worker(['--until-idle']);
    crew.at[place] = worker;
    const { code, stderr } = await worker.ended;
    crew.at[place] = undefined;
    crew.trouble.push(
      ...stderr.split('\n').filter(line => /failed|gave up on|released \S+:|error/.test(line)),
    );
    if (code === 0) return;
    if (code !== null) crew.deaths.push(`exit ${code}: ${stderr.slice(-2_000)}`);
    if (code !== null && crew.deaths.length > 3) return;
  }
}

it(`4 workers that are killed repeatedly land each of ${total} tasks once (SOAK_SEED=${seed})`, async ({
  signal,
}) => {
  console.info(`SOAK_SEED=${seed}`);
  const random = randomFrom(seed);
  const project = workerProject({
    tasks,
    config: `  implement:\n    kind: scripted${agent.replaceAll('\n', '\n  ')}`,
  });
  const crew: Crew = { at: [], deaths: [], trouble: [], signal };
  const began = Date.now();
  const places = Array.from({ length: workers }, (_, place) => keepWorkerRunning(project, crew, place));
  let isOver = false;
  const ended = Promise.all(places).then(() => {
    isOver = true;
  });
  let killed = 0;
  while (!isOver) {
    const victim = Math.floor(random() * workers);
    // Kills follow the landings, so that a slow machine sees as many of them as a fast one.
    const next = project.landed().length + 1 + Math.floor(random() * 8);
    while (!isOver && project.landed().length < Math.min(next, total)) await pause(100);
    await pause(random() * 500);
    if (isOver || project.landed().length >= total) break;
    if (!crew.at[victim]) continue;
    crew.at[victim]?.kill('SIGKILL');
    killed++;
  }
  await ended;
  console.info(`${killed} workers were killed in ${Math.round((Date.now() - began) / 1000)} s`);
  expect([...crew.deaths, ...crew.trouble]).toEqual([]);
  const claims = await project.inStore(store => store.claims.list());
  expect(claims.filter(({ state }) => state !== 'landed')).toEqual([]);
  expect(project.git('log', '--format=%s', '--invert-grep', '--grep=^Task: ', 'main')).toBe('Initial commit');
  expect(project.landed().toSorted()).toEqual(Object.keys(tasks));
  expect(await project.leftovers()).toEqual(nothingLeft);
  expect(project.git('rev-list', '--merges', 'main')).toBe('');
  expect(project.git('status', '--porcelain')).toBe('');
  project.git('fsck', '--strict');
  expect(killed).toBeGreaterThan(total / 40);
});
