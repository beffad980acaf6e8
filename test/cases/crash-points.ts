import { gitBackend, memoryBackend } from '../../src/cases/explore/backends.ts';
import type { Exploration } from '../../src/cases/explore/contract.ts';
import { CaseExplorer } from '../../src/cases/explore/explorer.ts';
import { prepareCase } from '../../src/cases/explore/prepare.ts';
import { findCases } from '../../src/cases/manifest/find.ts';
import { readCase } from '../../src/cases/manifest/load.ts';
import { testContext } from '../../src/cli/other-commands.ts';
import { runProgram } from '../../src/cli/program.ts';

/** Plays the recorded schedule of a case with a crash at every crash point, or at `most` of them. */
export async function crashAtEvery(
  name: string,
  { on, most = Number.POSITIVE_INFINITY }: { readonly on: 'memory' | 'git'; readonly most?: number },
): Promise<Exploration> {
  const forMs = Number.POSITIVE_INFINITY;
  const context = testContext({ env: process.env, cwd: process.cwd() }, runProgram);
  const [found] = findCases({ names: [name], cwd: process.cwd() }).cases;
  if (!found) throw new Error(`no case ${name}`);
  const prepared = await prepareCase(found, readCase(found), context);
  try {
    const backend = on === 'git' ? gitBackend(prepared) : await memoryBackend(prepared);
    const explorer = new CaseExplorer(backend, {
      policy: 'auto',
      schedules: most,
      forMs,
      seed: 1,
      crashes: true,
      faults: [],
    });
    await explorer.tryCrashPoints(forMs);
    return explorer.result;
  } finally {
    prepared.close();
  }
}
