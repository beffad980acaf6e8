import { gitTheatre, memoryTheatre } from '../../dist/cases/explore/backends.js';
import { CaseExplorer } from '../../dist/cases/explore/explorer.js';
import { performCase } from '../../dist/cases/explore/perform.js';
import { prepareCase } from '../../dist/cases/explore/prepare.js';
import { alikeSteps } from '../../dist/cases/explore/symmetry.js';
import { findCases } from '../../dist/cases/manifest/find.js';
import { readCase } from '../../dist/cases/manifest/load.js';
import { testContext } from '../../dist/cli/other-commands.js';
import { runProgram as runCommand } from '../../dist/cli/program.js';
import { Dpor } from '../../dist/effects/explore/dpor.js';
import { createGit } from '../../dist/git/git.js';
import { contend } from '../lib/contend.mjs';

const theatres = { memory: memoryTheatre, git: gitTheatre };

async function prepared(name, use) {
  const context = testContext({ env: process.env, cwd: process.cwd() }, runCommand);
  const [found] = findCases({ names: [name], cwd: process.cwd() }).cases;
  const ready = await prepareCase(found, readCase(found), context);
  try {
    return await use(ready);
  } finally {
    ready.close();
  }
}

const exploreOnce = (name, on, forMs) =>
  prepared(name, async ready => {
    const schedules = Number.POSITIVE_INFINITY;
    const options = { policy: 'dpor', forMs, schedules, seed: 1, crashes: false, faults: [] };
    const explorer = new CaseExplorer(await theatres[on](ready), options);
    const before = performance.now();
    await explorer.explore(forMs);
    const ms = performance.now() - before;
    const { failure, isComplete, schedules: played, entries } = explorer.result;
    if (failure) throw new Error(failure.message);
    return { ms, isComplete, schedules: played, entries };
  });

/**
 * `<case> <memory|git> <ms>`: every order that makes a difference, as the command explores; or as many as there is time for.
 * Once in a process that has done nothing before, and once more.
 */
async function everyOrder({ args: [name, on, mostMs] }) {
  const cold = await exploreOnce(name, on, Number(mostMs));
  const { ms: warmMs } = await exploreOnce(name, on, Number(mostMs));
  return { ...cold, warmMs };
}

/** `<case> <ms>`: the same orders one after another, of which only the time counts from the start of each git command to its end. */
const gitAlone = ({ args: [name, mostMs] }) =>
  prepared(name, async ready => {
    let [gitMs, commands, schedules] = [0, 0, 0];
    const runProgram = async (argv, options) => {
      const before = performance.now();
      try {
        return await ready.stage.runProgram(argv, options);
      } finally {
        gitMs += performance.now() - before;
        commands++;
      }
    };
    const git = createGit({ cwd: ready.stage.repo, env: ready.env, runProgram });
    const theatre = gitTheatre({ ...ready, stage: { ...ready.stage, git, runProgram } });
    const orders = new Dpor({ alike: alikeSteps(ready.manifest) });
    const ends = performance.now() + Number(mostMs);
    for (let policy = orders.next(); policy && performance.now() < ends; policy = orders.next()) {
      const performed = await performCase({ theatre, policy });
      if (performed.verdict.kind === 'failed') throw new Error(performed.verdict.message);
      orders.learn(performed, policy);
      schedules++;
    }
    return { gitMs, commands, schedules };
  });

await contend({ 'every-order': everyOrder, 'git-alone': gitAlone });
