import {
  continueLast,
  type Move,
  type Point,
  type Policy,
  type ScheduleVerdict,
  withoutIdleEnd,
} from '../../effects/explore/index.ts';
import { topLane } from '../../effects/recording/index.ts';
import type { TestContext } from '../context.ts';
import type { FoundCase } from '../manifest/find.ts';
import { readCase } from '../manifest/load.ts';
import type { ExplorationSettings as Wanted } from '../manifest/manifest.ts';
import { type CaseFailure, caseTitle } from '../result.ts';
import { gitBackend } from './backends.ts';
import { type CaseExploreOptions, isTooMuch, sumOf, waitsOf } from './contract.ts';
import { exploreCase } from './explore.ts';
import { CaseExplorer } from './explorer.ts';
import { prepareCase } from './prepare.ts';
import { type Race, type RaceFile, type RaceMove, racesOf } from './race-file.ts';
import { failureLines } from './text.ts';

/** Result of replaying a saved race. */
type RaceOutcome =
  | { readonly kind: 'fixed' }
  /** Fails in the same way. */
  | { readonly kind: 'there'; readonly message: string }
  /** Fails in another way. */
  | { readonly kind: 'other'; readonly what: string; readonly message: string }
  /** The code has changed so much that the schedule cannot be followed, so the result proves nothing. */
  | { readonly kind: 'unfit'; readonly missing: readonly string[] }
  | { readonly kind: 'inconclusive'; readonly why: string };

interface PlayedRace {
  readonly race: RaceFile;
  readonly outcome: RaceOutcome;
  readonly trace: readonly Move[];
  /** Moves that lanes wait for, in a deadlock. */
  readonly waits: readonly Move[];
}

/** Replays the races of a case on real git. Throws as `prepareCase` does. */
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
      const explorer = new CaseExplorer(gitBackend(prepared), oneSchedule);
      played.push({ race, ...(await playRace(explorer, race)) });
    }
    return played;
  } finally {
    prepared.close();
  }
}

/** Options that explore nothing: a single schedule is played. */
export const oneSchedule: CaseExploreOptions = {
  policy: 'auto',
  forMs: Number.POSITIVE_INFINITY,
  schedules: Number.POSITIVE_INFINITY,
  seed: 0,
  crashes: false,
  faults: [],
};

/** Replays one race on the backend of the explorer. */
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
  verdict: ScheduleVerdict,
  { what, missing }: { readonly what: string; readonly missing: readonly RaceMove[] },
): RaceOutcome {
  if (verdict.kind === 'failed' && verdict.what === what) return { kind: 'there', message: verdict.message };
  if (missing.length > 0) {
    const moves = missing.map(({ lane, op }) => `${op} of ${lane}`);
    return { kind: 'unfit', missing: [...new Set(moves)] };
  }
  if (verdict.kind === 'failed') return { ...verdict, kind: 'other' };
  if (verdict.kind === 'inconclusive') return { kind: 'inconclusive', why: verdict.why };
  return { kind: 'fixed' };
}

/** Returns the test failure for a replayed race; `undefined` if the race is fixed. */
export function raceFailure(
  { displayFile, name, what, case: of }: RaceFile,
  outcome: RaceOutcome,
): CaseFailure | undefined {
  const file = displayFile;
  const again = `reprise explore ${of} --race ${name}`;
  const findAgain = `delete the file and explore again: rm ${displayFile} && reprise explore ${of}`;
  switch (outcome.kind) {
    case 'fixed':
      return undefined;
    case 'there':
      return {
        kind: 'race',
        message: `${what}: ${outcome.message}`,
        hint: `show the schedule: ${again}`,
        file,
      };
    case 'other':
      return {
        kind: 'race',
        message: `${outcome.what}: ${outcome.message} (the schedule was saved for another failure: ${what})`,
        hint: `show the schedule: ${again}`,
        file,
      };
    case 'unfit':
      return {
        kind: 'stale',
        message: `race ${name} no longer fits the code: its schedule contains ${outcome.missing.slice(0, 3).join(', ')}, which no longer happens`,
        hint: findAgain,
        file,
      };
    case 'inconclusive':
      return {
        kind: 'stale',
        message: `race ${name} is inconclusive: ${outcome.why}`,
        hint: findAgain,
        file,
      };
  }
}

/** A policy that follows a schedule of older code. */
interface FollowedRace {
  readonly policy: Policy;
  /** Moves of the schedule that did not happen, so far. */
  readonly missing: readonly RaceMove[];
}

/**
 * Follows a saved schedule in code that may have changed. A lane that waits where the schedule lets it move is blocked by
 * the fix of the race, so its move is skipped. New moves happen when their lane is due. After the last switch between
 * commands the rest runs without preemption, and a fix may change it, so missing moves there are not reported.
 */
export function followRace(turns: readonly RaceMove[], isCalm: boolean): FollowedRace {
  const missing: RaceMove[] = [];
  const left = [...turns];
  const after = new Set(turns.slice(lastSwitch(turns) + 1));
  const miss = (turn: RaceMove) => {
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
      const skipped = left.slice(0, later).filter(each => each.lane === lane);
      for (const each of skipped) {
        miss(each);
        left.splice(left.indexOf(each), 1);
      }
    }
    return continueLast(point);
  };
  return { policy: { isCalm, choose }, missing };
}

/** Index of the last move that switches to another command; 0 if there is only one command. */
const lastSwitch = (turns: readonly RaceMove[]): number =>
  Math.max(
    0,
    turns.findLastIndex(({ lane }, n) => n > 0 && topLane(lane) !== topLane(turns[n - 1]?.lane ?? '')),
  );

/** Default budget for exploring a case in a test run. */
const small = { schedules: 20, forMs: 5_000 };

const columns = 80;

/** Replays the saved races of a case and explores it. Returns the failures; saves nothing. */
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
        message: `the in-memory model and real git disagree about one schedule. In memory: ${drift.failure.message}. On git: ${drift.onGit}`,
        hint: `show the schedule: ${replay} --on memory`,
        file,
      },
    ];
  if (failure)
    return [
      {
        kind: 'race',
        message: failureLines(failure, { columns, replay }).join('\n'),
        hint: `save it as a test that is replayed from now on: ${replay}`,
        file,
      },
    ];
  const count = sumOf(worlds);
  return isTooMuch(count)
    ? [
        {
          kind: 'race',
          message: `${count.inconclusive} of ${count.schedules} schedules are inconclusive, which is too many: ${worlds.find(world => world.doubt !== undefined)?.doubt ?? ''}`,
          hint: `show the summary: ${replay}`,
          file,
        },
      ]
    : [];
}
