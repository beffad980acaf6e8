import { expect, it } from 'vitest';
import { memoryBackend } from '../../src/cases/explore/backends.ts';
import { performCase } from '../../src/cases/explore/perform.ts';
import { prepareCase, symmetricSteps } from '../../src/cases/explore/prepare.ts';
import { readCase } from '../../src/cases/manifest/load.ts';
import { testContext } from '../../src/cli/other-commands.ts';
import { runProgram } from '../../src/cli/program.ts';
import { Dpor } from '../../src/effects/explore/dpor.ts';
import { topLane } from '../../src/effects/recording/recording.ts';
import { exploredCases } from '../cases/explored-cases.ts';

const context = testContext({ env: process.env, cwd: process.cwd() }, runProgram);

/** Counts the different schedules, by the order in which the commands dispatch. */
async function schedulesOf(title: string, { isReduced }: { readonly isReduced: boolean }) {
  const [, found] = exploredCases.find(([each]) => each === title) ?? [];
  if (!found) throw new Error('no such case');
  const prepared = await prepareCase(found, readCase(found), context);
  try {
    const backend = await memoryBackend(prepared);
    const dpor = new Dpor({ symmetric: isReduced ? symmetricSteps(prepared.manifest) : [] });
    const counts = new Map<string, number>();
    for (let policy = dpor.next(); policy; policy = dpor.next()) {
      const performed = await performCase({ backend, policy });
      dpor.learn(performed, policy);
      expect(performed.verdict.kind).toBe('passed');
      const dispatches = performed.trace.filter(({ op }) => op === 'agent.take-slot.end');
      const order = dispatches.map(({ lane }) => topLane(lane)).join();
      counts.set(order, (counts.get(order) ?? 0) + 1);
    }
    return counts;
  } finally {
    prepared.close();
  }
}

it.each([
  ['workers/two_once', 2],
  ['workers/three_once', 6],
])('%s has the same number of schedules for every order of its symmetric commands', async (title, orders) => {
  const [reduced, ...more] = (await schedulesOf(title, { isReduced: true })).values();
  expect(more).toEqual([]);
  const all = await schedulesOf(title, { isReduced: false });
  expect([...all.values()]).toEqual(Array.from({ length: orders }, () => reduced));
});
