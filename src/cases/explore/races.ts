import { type Move, type Verdict, withoutIdleEnd } from '../../effects/explore/schedule.ts';
import { followRace } from '../../testing/explore/follow-race.ts';
import { gitTheatre } from '../../testing/explore/git-theatre.ts';
import { readCase } from '../../testing/manifest/read-case.ts';
import type { TestContext } from '../context.ts';
import type { FoundCase } from '../manifest/find.ts';
import type { CaseFailure } from '../result.ts';
import { type ExploreOptions, waitsOf } from './contract.ts';
import { CaseExplorer } from './explorer.ts';
import { prepareCase } from './prepare.ts';
import { type Race, type RaceFile, racesOf, type Turn } from './race-file.ts';

/** What became of a race that was found before. */
export type RaceOutcome =
  | { readonly kind: 'mended' }
  /** It fails as it did. */
  | { readonly kind: 'there'; readonly message: string }
  /** It fails in another way. */
  | { readonly kind: 'other'; readonly what: string; readonly message: string }
  /** The code does other things now than the schedule says: whether the race is there cannot be told from it. */
  | { readonly kind: 'unfit'; readonly missing: readonly string[] }
  | { readonly kind: 'inconclusive'; readonly why: string };

export interface PlayedRace {
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
