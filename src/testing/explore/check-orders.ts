import type { TestContext } from '../../cases/context.ts';
import { exploreCase } from '../../cases/explore/explore.ts';
import { playRaces, raceFailure } from '../../cases/explore/races.ts';
import { failureLines } from '../../cases/explore/text.ts';
import type { FoundCase } from '../../cases/manifest/find.ts';
import type { Exploration as Wanted } from '../../cases/manifest/manifest.ts';
import type { CaseFailure } from '../../cases/result.ts';
import { caseTitle } from '../summary.ts';
import { isTooMuch, sumOf } from './doubt.ts';

/** What a case is explored with that says nothing else, as part of a test run. */
const small = { schedules: 20, forMs: 5_000 };

const columns = 80;

/** What breaks in another order than the recorded one. Nothing is written. */
export async function checkOtherOrders(
  found: FoundCase,
  wanted: Wanted | undefined,
  context: TestContext,
): Promise<readonly CaseFailure[]> {
  const played = await playRaces(found, context);
  const races = played.flatMap(({ race, outcome }) => raceFailure(race, outcome) ?? []);
  return races.length > 0 || !wanted ? races : explored(found, wanted, context);
}

async function explored(
  found: FoundCase,
  wanted: Wanted,
  context: TestContext,
): Promise<readonly CaseFailure[]> {
  const title = caseTitle(found);
  const { failure, drift, worlds } = await exploreCase(
    found,
    {
      policy: wanted.policy ?? 'auto',
      schedules: wanted.schedules ?? small.schedules,
      forMs: wanted.forMs ?? small.forMs,
      seed: wanted.seed ?? 1,
      crashes: wanted.crashes ?? false,
      faults: wanted.faults ?? [],
      interrupt: context.interrupt,
    },
    context,
  );
  const file = found.displayFile;
  const replay = `reprise explore ${title}`;
  if (drift)
    return [
      {
        kind: 'race',
        message: `the model of git and git itself do not agree about one order: in memory ${drift.failure.message}; on git ${drift.onGit}`,
        hint: `see it: ${replay} --on memory`,
        file,
      },
    ];
  if (failure)
    return [
      {
        kind: 'race',
        message: failureLines(failure, { columns, replay }).join('\n'),
        hint: `keep it, to have it played from now on: ${replay}`,
        file,
      },
    ];
  const doubt = sumOf(worlds);
  return isTooMuch(doubt)
    ? [
        {
          kind: 'race',
          message: `of ${doubt.schedules} orders nothing can be said about ${doubt.inconclusive}: ${worlds.find(world => world.doubt !== undefined)?.doubt ?? ''}`,
          hint: `see which: ${replay}`,
          file,
        },
      ]
    : [];
}
