import { runProgram } from '../../src/cli/program.ts';
import { testContext } from '../../src/cli/test-commands.ts';
import { everyMishap } from '../../src/testing/explore/adversities.ts';
import { asRecorded, recordedTurns } from '../../src/testing/explore/as-recorded.ts';
import type { Adversity } from '../../src/testing/explore/attempt.ts';
import { gitTheatre } from '../../src/testing/explore/git-theatre.ts';
import { memoryTheatre } from '../../src/testing/explore/memory-theatre.ts';
import { oneAfterAnother } from '../../src/testing/explore/orders.ts';
import { type PerformedCase, performCase } from '../../src/testing/explore/perform-case.ts';
import { prepareCase } from '../../src/testing/explore/prepared-case.ts';
import { findCases } from '../../src/testing/manifest/find.ts';
import { readCase } from '../../src/testing/manifest/read-case.ts';

export interface CrashedCase {
  readonly adversity: Adversity;
  readonly performed: PerformedCase;
}

export interface CrashPoints {
  /** As it was recorded, without a crash. */
  readonly calm: PerformedCase;
  readonly crashed: readonly CrashedCase[];
}

/** Plays a case in the order of its recording, and kills each step, and all at once, at each so manieth of all moments. */
export async function crashAtEvery(
  name: string,
  { on, each }: { readonly on: 'memory' | 'git'; readonly each: number },
): Promise<CrashPoints> {
  const context = testContext({ env: process.env, cwd: process.cwd() }, runProgram);
  const [found] = findCases({ names: [name], cwd: process.cwd() }).cases;
  if (!found) throw new Error(`no case ${name}`);
  const prepared = await prepareCase(found, readCase(found), context);
  try {
    const theatre = on === 'git' ? gitTheatre(prepared) : await memoryTheatre(prepared);
    const [{ policy }] = oneAfterAnother(prepared.manifest.steps.map(step => step.name));
    const turns = recordedTurns(prepared, await performCase({ prepared, theatre, policy }));
    const play = (adversity?: Adversity) =>
      performCase({ prepared, theatre, policy: asRecorded(turns), adversity });
    const calm = await play();
    const crashed: CrashedCase[] = [];
    for (const adversity of everyMishap(calm, { crashes: true, faults: [] }).filter(
      (_, at) => at % each === 0,
    ))
      crashed.push({ adversity, performed: await play(adversity) });
    return { calm, crashed };
  } finally {
    prepared.close();
  }
}

/** What was broken, or came to something else than without a crash, with when it was. */
export const brokenIn = ({ calm, crashed }: CrashPoints): readonly unknown[] =>
  crashed.flatMap(({ adversity, performed: { verdict, forms } }) => {
    if (verdict.kind === 'inconclusive') return [];
    return verdict.kind === 'passed' && forms?.work === calm.forms?.work
      ? []
      : [{ adversity, verdict, forms }];
  });

/** Of how many it can be told how they ended. */
export const judgedIn = ({ crashed }: CrashPoints): number =>
  crashed.filter(({ performed }) => performed.verdict.kind !== 'inconclusive').length / crashed.length;
