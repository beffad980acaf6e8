import { whoeverHasTheBaton } from '../../effects/explore/policies.ts';
import {
  type Move,
  type Point,
  type Policy,
  type Verdict,
  withoutIdleEnd,
} from '../../effects/explore/schedule.ts';
import { topLane } from '../../effects/recording/recording.ts';
import type { TestContext } from '../context.ts';
import type { FoundCase } from '../manifest/find.ts';
import { readCase } from '../manifest/load.ts';
import type { Exploration as Wanted } from '../manifest/manifest.ts';
import { type CaseFailure, caseTitle } from '../result.ts';
import { gitTheatre } from './backends.ts';
import { type ExploreOptions, isTooMuch, sumOf, waitsOf } from './contract.ts';
import { exploreCase } from './explore.ts';
import { CaseExplorer } from './explorer.ts';
import { prepareCase } from './prepare.ts';
import { type Race, type RaceFile, racesOf, type Turn } from './race-file.ts';
import { failureLines } from './text.ts';

/** What became of a race that was found before. */
type RaceOutcome =
  | { readonly kind: 'mended' }
  /** It fails as it did. */
  | { readonly kind: 'there'; readonly message: string }
  /** It fails in another way. */
  | { readonly kind: 'other'; readonly what: string; readonly message: string }
  /** The code does other things now than the schedule says: whether the race is there cannot be told from it. */
  | { readonly kind: 'unfit'; readonly missing: readonly string[] }
  | { readonly kind: 'inconclusive'; readonly why: string };

interface PlayedRace {
  readonly race: RaceFile;
  readonly outcome: RaceOutcome;
  readonly trace: readonly Move[];
  /** What lanes wait for, if nobody can go on. */
  readonly waits: readonly Move[];
}

/** Plays the races of a case on real git. Throws what keeps the case from being played. */
export async function playRaces(
  found: FoundCase,
  context: TestContext,
  wanted?: string,
): Promise<readonly PlayedRace[]> {
  const races = racesOf(found.folder, context.cwd).filter(
    ({ name }) => wanted === undefined || name === wanted,
  );
  if (races.length === 0) return [];
  const prepared = await prepareCase(found, readCase(found), context);
  try {
    const played: PlayedRace[] = [];
    for (const race of races) {
      const explorer = new CaseExplorer(gitTheatre(prepared), oneSchedule);
      played.push({ race, ...(await playRace(explorer, race)) });
    }
    return played;
  } finally {
    prepared.close();
  }
}

/** Nothing is looked for. */
export const oneSchedule: ExploreOptions = {
  policy: 'auto',
  forMs: Number.POSITIVE_INFINITY,
  schedules: Number.POSITIVE_INFINITY,
  seed: 0,
  crashes: false,
  faults: [],
};

/** Plays one race, in the world of the explorer. */
export async function playRace(
  explorer: CaseExplorer,
  { turns, isCalm, crashes, faults, what }: Race,
): Promise<Omit<PlayedRace, 'race'>> {
  const { policy, missing } = followRace(turns, isCalm);
  const { verdict, trace, left } = await explorer.retry({ policy, adversity: { crashes, faults } });
  const waits = waitsOf(verdict, left);
  return {
    trace: waits.length > 0 ? withoutIdleEnd(trace) : trace,
    waits,
    outcome: outcomeOf(verdict, { what, missing }),
  };
}

function outcomeOf(
  verdict: Verdict,
  { what, missing }: { readonly what: string; readonly missing: readonly Turn[] },
): RaceOutcome {
  if (verdict.kind === 'failed' && verdict.what === what) return { kind: 'there', message: verdict.message };
  if (missing.length > 0) {
    const said = missing.map(({ lane, op }) => `${op} of ${lane}`);
    return { kind: 'unfit', missing: [...new Set(said)] };
  }
  if (verdict.kind === 'failed') return { ...verdict, kind: 'other' };
  if (verdict.kind === 'inconclusive') return { kind: 'inconclusive', why: verdict.why };
  return { kind: 'mended' };
}

/** What is to be said about a race in a test run; nothing if it is mended. */
export function raceFailure(
  { displayFile, name, what, case: of }: RaceFile,
  outcome: RaceOutcome,
): CaseFailure | undefined {
  const file = displayFile;
  const again = `reprise explore ${of} --race ${name}`;
  const anew = `find it anew: rm ${displayFile} && reprise explore ${of}`;
  switch (outcome.kind) {
    case 'mended':
      return undefined;
    case 'there':
      return { kind: 'race', message: `${what}: ${outcome.message}`, hint: `see how: ${again}`, file };
    case 'other':
      return {
        kind: 'race',
        message: `${outcome.what}: ${outcome.message} (the schedule was kept for: ${what})`,
        hint: `see how: ${again}`,
        file,
      };
    case 'unfit':
      return {
        kind: 'stale',
        message: `the schedule of ${name} no longer fits: nobody does ${outcome.missing.slice(0, 3).join(', ')} any more`,
        hint: anew,
        file,
      };
    case 'inconclusive':
      return {
        kind: 'stale',
        message: `nothing can be said about ${name}: ${outcome.why}`,
        hint: anew,
        file,
      };
  }
}

/** Follows a schedule that was found in code that has changed since. */
interface Following {
  readonly policy: Policy;
  /** What the schedule says and nobody does any more, as far as it went. */
  readonly missing: readonly Turn[];
}

/**
 * Whoever waits where the schedule lets it go on is held back by something that was not there before, which is what mends
 * a race: its turn is left out. What is new is done when its lane has its turn. After the last switch between steps
 * everything comes by itself, and other things where the race is mended: what is not done there is not missed.
 */
export function followRace(turns: readonly Turn[], isCalm: boolean): Following {
  const missing: Turn[] = [];
  const left = [...turns];
  const after = new Set(turns.slice(lastSwitch(turns) + 1));
  const miss = (turn: Turn) => {
    if (!after.has(turn)) missing.push(turn);
  };
  const choose = (point: Point): string => {
    for (let wanted = left[0]; wanted; wanted = left[0]) {
      const { lane, op } = wanted;
      const move = point.enabled.find(each => each.lane === lane);
      if (move?.op === op) {
        left.shift();
        return lane;
      }
      if (!move) {
        left.shift();
        if (!point.waiting.some(each => each.lane === lane)) miss(wanted);
        continue;
      }
      const later = left.findIndex(each => each.lane === lane && each.op === move.op);
      if (later < 0) return lane;
      const gone = left.slice(0, later).filter(each => each.lane === lane);
      for (const each of gone) {
        miss(each);
        left.splice(left.indexOf(each), 1);
      }
    }
    return whoeverHasTheBaton(point);
  };
  return { policy: { isCalm, choose }, missing };
}

/** Where a step goes on that did not go on right before; 0 if there is only one. */
const lastSwitch = (turns: readonly Turn[]): number =>
  Math.max(
    0,
    turns.findLastIndex(({ lane }, n) => n > 0 && topLane(lane) !== topLane(turns[n - 1]?.lane ?? '')),
  );

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
