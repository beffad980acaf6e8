import { execFileSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { CliResult } from '../e2e/run-inline.ts';
import { manyTasks, nothingLeft, type WorkerProject, workerProject } from '../e2e/worker-project.ts';
import { ProcessTree } from '../support/process-trees.ts';
import { randomFrom, seedOf } from '../support/random.ts';
import { rounds } from '../support/rounds.ts';

/**
 * Kills a command together with all of its processes, git included, as the OOM killer, `docker kill` or a power loss does.
 * `TEST_SEED` repeats a run; `REPRISE_TEST_ROUNDS=10` is the long form with 200 kills and 20 stops.
 */
const seed = seedOf(Date.now() % 1_000_000);
const kills = Math.ceil(rounds(20) / 3);
const stops = rounds(2);

/** Enough files that git takes a while to check them out, so that kills hit it. */
const fileCount = 150;
const files = (name: string) => `for i in $(seq 1 ${fileCount}); do echo $i > "${name}-$i.txt"; done`;
const taskAgents = { implement: `${files('$REPRISE_TASK')}; echo "<next>land</next>"` };
const agents = { t: `${files('$prompt')}; echo done` };

const workflow = `
name: w
steps:
  - { id: a, agent: t, prompt: a }
  - { id: b, agent: t, prompt: b }
  - { id: land_a, needs: [a], land: main, from: a }
  - { id: land_b, needs: [b, land_a], land: main, from: b }
`;

const lines = (text: string): readonly string[] => text.split('\n').filter(line => line !== '');

/** Everything that must hold once the last command has ended: all work is on main, once, and nothing is in the way. */
async function expectTidy(
  project: WorkerProject,
  { context, landed, ofRuns }: { context: string; landed: readonly string[]; ofRuns: 'kept' | 'removed' },
): Promise<void> {
  const { root, git } = project;
  const onMain = lines(git('ls-tree', '-r', '--name-only', 'main')).filter(name => /-\d+\.txt$/.test(name));
  const left = await project.leftovers();
  const kept = ofRuns === 'kept' ? { worktrees: left.worktrees, branches: left.branches } : {};
  expect({
    context,
    commits: Number(git('rev-list', '--count', 'main')) - 1,
    files: onMain.length,
    status: git('status', '--porcelain'),
    gitLocks: lines(execFileSync('find', ['.git', '-name', '*.lock'], { cwd: root, encoding: 'utf8' })),
    ...left,
  }).toEqual({
    context,
    commits: landed.length,
    files: landed.length * fileCount,
    status: '',
    gitLocks: [],
    ...nothingLeft,
    ...kept,
  });
  git('fsck', '--strict', '--no-dangling');
}

interface KillableCommand {
  readonly project: WorkerProject;
  readonly random: () => number;
  /** Time that the command takes if it is not killed. */
  readonly usualMs: number;
}

/** Runs a command and kills its tree at a random moment. Returns `undefined` if it was killed, or else its result. */
async function killed({ project, random, usualMs }: KillableCommand, args: readonly string[]) {
  const command = project.begin(args);
  const tree = new ProcessTree(command.pid);
  const ended = await Promise.race([command.ended, delay(random() * usualMs).then(() => undefined)]);
  if (ended) return ended;
  await tree.kill();
  const result = await command.ended;
  return result.code === null ? undefined : result;
}

const expectOk = (context: string, { code, stderr }: CliResult): void =>
  expect([context, code, code === 0 ? '' : stderr.slice(-1500)]).toEqual([context, 0, '']);

/** Repeats `body` with a new project until enough commands were killed. */
async function untilKilled(body: (random: () => number) => Promise<number>): Promise<void> {
  const random = randomFrom(seed);
  for (let done = 0; done < kills; ) done += await body(random);
}

async function timed<T>(command: Promise<T>): Promise<number> {
  const began = performance.now();
  await command;
  return performance.now() - began;
}

describe(`commands that are killed together with git (TEST_SEED=${seed})`, () => {
  it(`run and resume, ${kills} times`, async () => {
    console.info(`TEST_SEED=${seed}`);
    const create = () => workerProject({ agents, files: { 'w.yaml': workflow } });
    const usualMs = await timed(create().cli(['run', 'w.yaml']));
    await untilKilled(async random => {
      const project = create();
      let count = 0;
      let ended: CliResult | undefined;
      let isStarted = false;
      // The last command of a round is not killed: it must work whatever the killed ones left.
      while (count < 3 && ended?.code !== 0) {
        const args = isStarted ? ['resume'] : ['run', 'w.yaml'];
        ended = await killed({ project, random, usualMs }, args);
        if (ended && ended.code !== 0) expect(ended.stderr).toContain('RUN_NOT_FOUND');
        isStarted = ended === undefined;
        if (!ended) count++;
      }
      const context = `${count} kills of run and resume`;
      const resumed = await project.cli(['resume']);
      const isUnknown = resumed.stderr.includes('RUN_NOT_FOUND');
      expectOk(context, isUnknown ? await project.cli(['run', 'w.yaml']) : resumed);
      await expectTidy(project, { context, landed: ['a', 'b'], ofRuns: 'kept' });
      return count;
    });
  });

  it(`land, ${kills} times`, async () => {
    let usualMs = 1_000;
    await untilKilled(async random => {
      const one = '{ name: w, steps: [ { id: a, agent: t, prompt: x } ] }';
      const project = workerProject({ agents, files: { 'w.yaml': one } });
      expectOk('run', await project.cli(['run', 'w.yaml']));
      let count = 0;
      let ended: CliResult | undefined;
      while (count < 4 && !ended) {
        const began = performance.now();
        ended = await killed({ project, random, usualMs }, ['land']);
        if (!ended) count++;
        else {
          expectOk(`land after ${count} kills`, ended);
          usualMs = performance.now() - began;
        }
      }
      const context = `${count} kills of land`;
      expectOk(context, await project.cli(['land']));
      await expectTidy(project, { context, landed: ['a'], ofRuns: 'kept' });
      return count;
    });
  });

  it(`workers, ${kills} times`, async () => {
    const tasks = manyTasks(6);
    await untilKilled(async random => {
      const project = workerProject({ agents: taskAgents, tasks });
      let count = 0;
      let ended: CliResult | undefined;
      while (count < 8 && !ended) {
        const args = ['worker', '--until-idle', '--workers', '2'];
        ended = await killed({ project, random, usualMs: 5_000 }, args);
        if (ended) expectOk(`worker after ${count} kills`, ended);
        else count++;
      }
      const context = `${count} kills of workers`;
      expectOk(context, await project.cli(['worker', '--until-idle']));
      expect([context, project.landed().toSorted()]).toEqual([context, Object.keys(tasks)]);
      await expectTidy(project, { context, landed: Object.keys(tasks), ofRuns: 'removed' });
      return count;
    });
  });

  it(`workers that are stopped and continued, ${stops} times`, async () => {
    const random = randomFrom(seed + 1);
    const tasks = manyTasks(4);
    for (let round = 1; round <= stops; round++) {
      const project = workerProject({ agents: taskAgents, tasks });
      const workers = [0, 1].map(() => project.worker(['--until-idle']));
      const tree = new ProcessTree(workers[0]?.pid ?? 0);
      await delay(random() * 3_000);
      await tree.stop();
      await delay(500 + random() * 3_000);
      tree.resume();
      for (const worker of workers) expectOk(`round ${round}`, await worker.ended);
      expect(project.landed().toSorted()).toEqual(Object.keys(tasks));
      await expectTidy(project, {
        context: `round ${round}`,
        landed: Object.keys(tasks),
        ofRuns: 'removed',
      });
    }
  });
});
