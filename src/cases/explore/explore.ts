import { RepriseError } from '../../core/errors.ts';
import { followLeniently, followStrictly, minimise } from '../../effects/explore/minimise.ts';
import type { Policy, Verdict } from '../../effects/explore/schedule.ts';
import { topLane } from '../../effects/recording/recording.ts';
import type { TestContext } from '../context.ts';
import type { FoundCase } from '../manifest/find.ts';
import { readCase } from '../manifest/load.ts';
import { gitTheatre, memoryTheatre, type Theatre } from './backends.ts';
import {
  type Adversity,
  aboutOf,
  type Exploration,
  type ExploreOptions,
  type Failure,
  waitsOf,
} from './contract.ts';
import { isAboutOrders } from './endings.ts';
import { CaseExplorer } from './explorer.ts';
import type { PerformedCase } from './perform.ts';
import { type PreparedCase, prepareCase } from './prepare.ts';
import { switchesBetweenSteps } from './text.ts';

/** How many schedules may be tried, and for how long: on git one takes a second. */
const limits = {
  memory: { most: 400, forMs: 8_000 },
  git: { most: 30, forMs: 10_000 },
} as const;

/** The same failure with less of everything: crashes and faults, time that passes, switches between steps. */
async function shorten(explorer: CaseExplorer, failure: Failure): Promise<Failure> {
  const { most, forMs } = limits[explorer.kind];
  const ends = performance.now() + forMs;
  const adversity = await leastAdversity(explorer, failure);
  const calm = failure.isCalm ? undefined : await calmer(explorer, { ...failure, adversity });
  const isCalm = failure.isCalm || calm !== undefined;
  const found = calm ?? (await play(explorer, failure, { adversity, isCalm }));
  if (!isSame(found, failure)) return failure;
  const { performed, schedule } = await minimise(
    policy => retry(explorer, failure, { policy, adversity }),
    found,
    {
      isCalm,
      most,
      isOver: () => performance.now() >= ends,
      ofLane: topLane,
      switchesOf: (trace, { verdict, left }) => switchesBetweenSteps(trace, waitsOf(verdict, left)),
    },
  );
  const { message } = performed.verdict.kind === 'failed' ? performed.verdict : failure;
  const waits = waitsOf(performed.verdict, performed.left);
  return { ...failure, message, adversity, isCalm, trace: schedule, waits };
}

/** Whether the same schedule, as far as it goes, fails there in the same way. */
async function failsToo(explorer: CaseExplorer, failure: Failure): Promise<boolean> {
  return isSame(await play(explorer, failure, failure), failure);
}

type Variation = Pick<Failure, 'adversity' | 'isCalm'>;

const play = (explorer: CaseExplorer, failure: Failure, { adversity, isCalm }: Variation) =>
  retry(explorer, failure, { policy: followLeniently(failure.trace, { isCalm }), adversity });

const retry = (
  explorer: CaseExplorer,
  { what }: Failure,
  attempt: { readonly policy: Policy; readonly adversity: Adversity },
): Promise<PerformedCase> => explorer.retry(attempt, { comparesOrders: isAboutOrders(what) });

const isSame = ({ verdict }: PerformedCase, { what }: Failure): boolean =>
  verdict.kind === 'failed' && verdict.what === what;

/** The same without time that passes while somebody could go on, if it fails as well. */
async function calmer(explorer: CaseExplorer, failure: Failure): Promise<PerformedCase | undefined> {
  const calm = await play(explorer, failure, { ...failure, isCalm: true });
  return isSame(calm, failure) ? calm : undefined;
}

/** Without those crashes and faults that it would fail without. */
async function leastAdversity(explorer: CaseExplorer, failure: Failure): Promise<Adversity> {
  let least = failure.adversity;
  const { isCalm } = failure;
  const { crashes, faults } = least;
  const tryWith = async (fewer: Adversity) => {
    if (isSame(await play(explorer, failure, { adversity: fewer, isCalm }), failure)) least = fewer;
  };
  for (const crash of crashes)
    await tryWith({ ...least, crashes: least.crashes.filter(each => each !== crash) });
  for (const fault of faults)
    await tryWith({ ...least, faults: least.faults.filter(each => each !== fault) });
  return least;
}

/** What came of exploring a case, in one world after the other. */
export interface CaseExploration {
  readonly worlds: readonly Exploration[];
  /** Seen on real git. */
  readonly failure?: Failure | undefined;
  /** The model said that it fails, and git does not. */
  readonly drift?: Drift | undefined;
  /** Why it was not explored in memory. */
  readonly note?: string | undefined;
}

interface Drift {
  readonly failure: Failure;
  /** What the same schedule came to on git. */
  readonly onGit: string;
}

/** Explores a case in memory, where it is fast, and on real git, which has the last word. */
export async function exploreCase(
  found: FoundCase,
  options: ExploreOptions,
  context: TestContext,
): Promise<CaseExploration> {
  const prepared = await prepareCase(found, readCase(found), context);
  try {
    return await explorePrepared(prepared, options);
  } finally {
    prepared.close();
  }
}

async function explorePrepared(prepared: PreparedCase, options: ExploreOptions): Promise<CaseExploration> {
  const { on } = options;
  const model = on === 'git' ? undefined : await inMemory(prepared, on);
  const git = new CaseExplorer(gitTheatre(prepared), options);
  if (!model || 'note' in model) {
    await exploreAlone(git, options);
    const failure = git.failure && (await shortest(git, git.failure));
    return { worlds: [git.result], failure, note: model?.note };
  }
  const memory = new CaseExplorer(model, options);
  if (on === 'memory') await exploreAlone(memory, options);
  else await exploreBoth({ memory, git }, options);
  const worlds = [memory, git].map(({ result }) => result).filter(({ schedules }) => schedules > 0);
  return { worlds, ...(await reported({ memory, git })) };
}

async function exploreAlone(explorer: CaseExplorer, { forMs, crashPoints }: ExploreOptions): Promise<void> {
  const ends = performance.now() + forMs;
  if (crashPoints) await explorer.tryCrashPoints(forMs);
  if (crashPoints !== 'only' && !explorer.isSpent) await explorer.explore(ends - performance.now());
}

interface Both {
  readonly memory: CaseExplorer;
  readonly git: CaseExplorer;
}

/** In how many parts the time is shared out, and how long one is at the least. */
const parts = 8;
const shortestPartMs = 3_000;

/**
 * They take turns: what git does by itself, the model does not show. Crashes that come first do so in memory, where there
 * is time for all of them.
 */
async function exploreBoth({ memory, git }: Both, { forMs, crashPoints }: ExploreOptions): Promise<void> {
  const partMs = Math.max(forMs / parts, shortestPartMs);
  const ends = performance.now() + forMs;
  const isOver = () => Boolean(memory.failure ?? git.failure) || performance.now() >= ends;
  await git.begin();
  if (crashPoints && !isOver()) await memory.tryCrashPoints(ends - performance.now());
  if (crashPoints === 'only') {
    if (!isOver()) await git.tryCrashPoints(ends - performance.now());
    return;
  }
  const goesOn = ({ isSpent }: CaseExplorer) => !isSpent && !isOver() && !memory.hasGivenUp;
  while (goesOn(memory) || goesOn(git))
    for (const explorer of [memory, git])
      if (goesOn(explorer)) await explorer.explore(Math.min(partMs, ends - performance.now()));
  if (memory.hasGivenUp && !isOver()) await git.tryCrashPoints(ends - performance.now());
}

async function inMemory(
  prepared: PreparedCase,
  on: ExploreOptions['on'],
): Promise<Theatre | { readonly note: string }> {
  try {
    return await memoryTheatre(prepared);
  } catch (error) {
    const isOnlyOnGit = error instanceof RepriseError && error.code === 'CANNOT_EXPLORE';
    if (!isOnlyOnGit || on === 'memory') throw error;
    return { note: error.message };
  }
}

/** Nothing is said to fail that does not fail on real git. */
async function reported({ memory, git }: Both): Promise<Pick<CaseExploration, 'failure' | 'drift'>> {
  if (git.failure) return { failure: await shortenInMemory({ memory, git }, git.failure) };
  if (!memory.failure) return {};
  if (aboutOf(memory.failure) === 'chance') return { failure: memory.failure };
  const failure = await shortest(memory, memory.failure);
  const { isTrue, verdict } = await isConfirmed(git, failure);
  if (isTrue) return { failure };
  const long = await isConfirmed(git, memory.failure);
  if (long.isTrue) return { failure: await shortest(git, memory.failure) };
  return { drift: { failure, onGit: wordsOf(verdict) } };
}

/** What is not about an order is as plain in any schedule. */
const shortest = async (explorer: CaseExplorer, failure: Failure): Promise<Failure> =>
  aboutOf(failure) === 'order' ? shorten(explorer, failure) : failure;

/** Many more schedules can be tried there, if what fails on git fails in memory too. */
async function shortenInMemory({ memory, git }: Both, failure: Failure): Promise<Failure> {
  if (aboutOf(failure) !== 'order') return failure;
  if (await failsToo(memory, failure)) {
    const short = await shorten(memory, failure);
    if ((await isConfirmed(git, short)).isTrue) return short;
  }
  return shorten(git, failure);
}

async function isConfirmed(
  explorer: CaseExplorer,
  { trace, isCalm, adversity, what }: Failure,
): Promise<{ readonly isTrue: boolean; readonly verdict: Verdict }> {
  const { verdict } = await explorer.retry(
    { policy: followStrictly(trace, { isCalm, goesOn: true }), adversity },
    { comparesOrders: isAboutOrders(what) },
  );
  return { isTrue: verdict.kind === 'failed' && verdict.what === what, verdict };
}

const wordsOf = (verdict: Verdict): string => {
  switch (verdict.kind) {
    case 'failed':
      return verdict.message;
    case 'inconclusive':
      return verdict.why;
    default:
      return verdict.kind;
  }
};
