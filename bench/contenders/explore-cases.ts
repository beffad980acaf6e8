import { gitBackend, memoryBackend } from '../../src/cases/explore/backends.ts';
import { CaseExplorer } from '../../src/cases/explore/explorer.ts';
import { performCase } from '../../src/cases/explore/perform.ts';
import { type PreparedCase, prepareCase, symmetricSteps } from '../../src/cases/explore/prepare.ts';
import { findCases } from '../../src/cases/manifest/find.ts';
import { readCase } from '../../src/cases/manifest/load.ts';
import { testContext } from '../../src/cli/other-commands.ts';
import { runProgram as runCommand } from '../../src/cli/program.ts';
import { Dpor } from '../../src/effects/explore/dpor.ts';
import { createGit } from '../../src/git/git.ts';
import type { RunProgram } from '../../src/process/index.ts';
import { contend } from '../lib/contend.ts';

const backends = { memory: memoryBackend, git: gitBackend };

type BackendName = keyof typeof backends;

async function prepared<T>(name: string, use: (ready: PreparedCase) => Promise<T>): Promise<T> {
  const context = testContext({ env: process.env, cwd: process.cwd() }, runCommand);
  const [found] = findCases({ names: [name], cwd: process.cwd() }).cases;
  if (!found) throw new Error(`no case ${name}`);
  const ready = await prepareCase(found, readCase(found), context);
  try {
    return await use(ready);
  } finally {
    ready.close();
  }
}

const exploreOnce = (name: string, on: BackendName, forMs: number) =>
  prepared(name, async ready => {
    const schedules = Number.POSITIVE_INFINITY;
    const explorer = new CaseExplorer(await backends[on](ready), {
      ...{ policy: 'dpor', forMs, schedules, seed: 1, crashes: false, faults: [] },
    });
    const before = performance.now();
    await explorer.explore(forMs);
    const ms = performance.now() - before;
    const { failure, isComplete, schedules: played, entries } = explorer.result;
    if (failure) throw new Error(failure.message);
    return { ms, isComplete, schedules: played, entries };
  });

/** Plays every distinct schedule, like `reprise explore`, or as many as fit into the time. Runs twice in one process. */
async function everyOrder(_folder: string, name: string, on: BackendName, mostMs: number) {
  const cold = await exploreOnce(name, on, mostMs);
  const { ms: warmMs } = await exploreOnce(name, on, mostMs);
  return { ...cold, warmMs };
}

/** Plays the same schedules one after another. Only the time inside git commands counts. */
const gitAlone = (_folder: string, name: string, mostMs: number) =>
  prepared(name, async ready => {
    let [gitMs, commands, schedules] = [0, 0, 0];
    const runProgram: RunProgram = async (argv, options) => {
      const before = performance.now();
      try {
        return await ready.stage.runProgram(argv, options);
      } finally {
        gitMs += performance.now() - before;
        commands++;
      }
    };
    const git = createGit({ cwd: ready.stage.repo, env: ready.env, runProgram });
    const backend = gitBackend({ ...ready, stage: { ...ready.stage, git, runProgram } });
    const orders = new Dpor({ symmetric: symmetricSteps(ready.manifest) });
    const ends = performance.now() + mostMs;
    for (let policy = orders.next(); policy && performance.now() < ends; policy = orders.next()) {
      const performed = await performCase({ backend, policy });
      if (performed.verdict.kind === 'failed') throw new Error(performed.verdict.message);
      orders.learn(performed, policy);
      schedules++;
    }
    return { gitMs, commands, schedules };
  });

export const methods = { 'every-order': everyOrder, 'git-alone': gitAlone };

await contend(methods);
