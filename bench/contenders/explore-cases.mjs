import childProcess from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';
import { contend } from '../lib/contend.mjs';

/** How long programs were under way that this process has started. */
let startedMs = 0;
const { spawn } = childProcess;
childProcess.spawn = (...args) => {
  const before = performance.now();
  const child = spawn(...args);
  child.once('close', () => {
    startedMs += performance.now() - before;
  });
  return child;
};
syncBuiltinESMExports();

const { runProgram } = await import('../../dist/cli/program.js');
const { testContext } = await import('../../dist/cli/test-commands.js');
const { Dpor } = await import('../../dist/conductor/explore/dpor.js');
const { alikeSteps } = await import('../../dist/testing/explore/alike.js');
const { gitTheatre } = await import('../../dist/testing/explore/git-theatre.js');
const { memoryTheatre } = await import('../../dist/testing/explore/memory-theatre.js');
const { performCase } = await import('../../dist/testing/explore/perform-case.js');
const { prepareCase } = await import('../../dist/testing/explore/prepared-case.js');
const { findCases } = await import('../../dist/testing/manifest/find.js');
const { readCase } = await import('../../dist/testing/manifest/read-case.js');

const theatres = { memory: memoryTheatre, git: gitTheatre };

/** Every order of a case that makes a difference, once it is prepared; or as many as there is time for. */
async function everyOrder({ args: [name, on, mostMs] }) {
  const context = testContext({ env: process.env, cwd: process.cwd() }, runProgram);
  const [found] = findCases({ names: [name], cwd: process.cwd() }).cases;
  const prepared = await prepareCase(found, readCase(found), context);
  try {
    const theatre = await theatres[on](prepared);
    const orders = new Dpor({ alike: alikeSteps(prepared.manifest) });
    let [schedules, cut, entries] = [0, 0, 0];
    startedMs = 0;
    const before = performance.now();
    const spentMs = () => performance.now() - before;
    for (let policy = orders.next(); policy && spentMs() < Number(mostMs); policy = orders.next()) {
      const performed = await performCase({ prepared, theatre, policy });
      const { verdict } = performed;
      if (verdict.kind === 'failed') throw new Error(verdict.message);
      orders.learn(performed);
      entries += performed.entries;
      if (verdict.kind === 'cut') cut += 1;
      else schedules += 1;
    }
    return { ms: spentMs(), gitMs: startedMs, schedules, cut, entries, isComplete: orders.isComplete };
  } finally {
    prepared.close();
  }
}

await contend({ 'every-order': everyOrder });
