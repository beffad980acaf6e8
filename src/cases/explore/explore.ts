import { RepriseError } from '../../core/index.ts';
import {
  followLeniently,
  followStrictly,
  minimise,
  type Policy,
  type ScheduleVerdict,
} from '../../effects/explore/index.ts';
import { topLane } from '../../effects/recording/index.ts';
import type { TestContext } from '../context.ts';
import type { FoundCase } from '../manifest/find.ts';
import { readCase } from '../manifest/load.ts';
import { type Backend, gitBackend, memoryBackend } from './backends.ts';
import {
  aboutOf,
  type CaseExploreOptions,
  type Exploration,
  type Failure,
  type Faults,
  waitsOf,
} from './contract.ts';
import { CaseExplorer } from './explorer.ts';
import { isAboutOrders } from './outcomes.ts';
import type { PerformedCase } from './perform.ts';
import { type PreparedCase, prepareCase } from './prepare.ts';
import { switchesBetweenSteps } from './text.ts';

/** Budget for minimizing a failure. A schedule on real git takes about a second. */
const limits = {
  memory: { most: 400, forMs: 8_000 },
  git: { most: 30, forMs: 10_000 },
} as const;

/** Minimizes a failure: fewer crashes and faults, no time passing if possible, fewer switches between commands. */
async function shorten(explorer: CaseExplorer, failure: Failure): Promise<Failure> {
  const { most, forMs } = limits[explorer.kind];
  const ends = performance.now() + forMs;
  const adversity = await leastFaults(explorer, failure);
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

/** Whether the schedule, followed as far as possible, fails in the same way. */
async function failsToo(explorer: CaseExplorer, failure: Failure): Promise<boolean> {
  return isSame(await play(explorer, failure, failure), failure);
}

type Variation = Pick<Failure, 'adversity' | 'isCalm'>;

const play = (explorer: CaseExplorer, failure: Failure, { adversity, isCalm }: Variation) =>
  retry(explorer, failure, { policy: followLeniently(failure.trace, { isCalm }), adversity });

const retry = (
  explorer: CaseExplorer,
  { what }: Failure,
  attempt: { readonly policy: Policy; readonly adversity: Faults },
): Promise<PerformedCase> => explorer.retry(attempt, { comparesOrders: isAboutOrders(what) });

const isSame = ({ verdict }: PerformedCase, { what }: Failure): boolean =>
  verdict.kind === 'failed' && verdict.what === what;

/** Plays the failure with time passing only while all lanes wait. Returns `undefined` if it does not fail then. */
async function calmer(explorer: CaseExplorer, failure: Failure): Promise<PerformedCase | undefined> {
  const calm = await play(explorer, failure, { ...failure, isCalm: true });
  return isSame(calm, failure) ? calm : undefined;
}

/** Removes the crashes and faults that the failure does not need. */
async function leastFaults(explorer: CaseExplorer, failure: Failure): Promise<Faults> {
  let least = failure.adversity;
  const { isCalm } = failure;
  const { crashes, faults } = least;
  const tryWith = async (fewer: Faults) => {
    if (isSame(await play(explorer, failure, { adversity: fewer, isCalm }), failure)) least = fewer;
  };
  for (const crash of crashes)
    await tryWith({ ...least, crashes: least.crashes.filter(each => each !== crash) });
  for (const fault of faults)
    await tryWith({ ...least, faults: least.faults.filter(each => each !== fault) });
  return least;
}

/** Result of exploring a case on one or both backends. */
export interface CaseExploration {
  readonly worlds: readonly Exploration[];
  /** Failure that was reproduced on real git. */
  readonly failure?: Failure | undefined;
  /** Failure of the in-memory model that real git does not show. */
  readonly drift?: Drift | undefined;
  /** Reason that the case was not explored in memory. */
  readonly note?: string | undefined;
}

interface Drift {
  readonly failure: Failure;
  /** Result of the same schedule on real git. */
  readonly onGit: string;
}

/** Explores a case in memory, which is fast, and on real git, which decides whether a failure is real. */
export async function exploreCase(
  found: FoundCase,
  options: CaseExploreOptions,
  context: TestContext,
): Promise<CaseExploration> {
  const prepared = await prepareCase(found, readCase(found), context);
  try {
    return await explorePrepared(prepared, options);
  } finally {
    prepared.close();
  }
}

async function explorePrepared(
  prepared: PreparedCase,
  options: CaseExploreOptions,
): Promise<CaseExploration> {
  const { on } = options;
  const model = on === 'git' ? undefined : await inMemory(prepared, on);
  const git = new CaseExplorer(gitBackend(prepared), options);
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

async function exploreAlone(
  explorer: CaseExplorer,
  { forMs, crashPoints }: CaseExploreOptions,
): Promise<void> {
  const ends = performance.now() + forMs;
  if (crashPoints) await explorer.tryCrashPoints(forMs);
  if (crashPoints !== 'only' && !explorer.isSpent) await explorer.explore(ends - performance.now());
}

interface ExplorerPair {
  readonly memory: CaseExplorer;
  readonly git: CaseExplorer;
}

/** Number of time slices, and the minimum length of one. */
const parts = 8;
const shortestPartMs = 3_000;

/**
 * Alternates between the backends, because the model does not show everything that git does. Crash points that come first
 * are tried in memory, where there is time for all of them.
 */
async function exploreBoth(
  { memory, git }: ExplorerPair,
  { forMs, crashPoints }: CaseExploreOptions,
): Promise<void> {
  const partMs = Math.max(forMs / parts, shortestPartMs);
  const ends = performance.now() + forMs;
  const isOver = () => Boolean(memory.failure ?? git.failure) || performance.now() >= ends;
  await git.begin();
  if (crashPoints && !isOver()) await memory.tryCrashPoints(ends - performance.now());
  if (crashPoints === 'only') {
    if (!isOver()) await git.tryCrashPoints(ends - performance.now());
    return;
  }
  const canContinue = ({ isSpent }: CaseExplorer) => !isSpent && !isOver() && !memory.hasGivenUp;
  while (canContinue(memory) || canContinue(git))
    for (const explorer of [memory, git])
      if (canContinue(explorer)) await explorer.explore(Math.min(partMs, ends - performance.now()));
  if (memory.hasGivenUp && !isOver()) await git.tryCrashPoints(ends - performance.now());
}

async function inMemory(
  prepared: PreparedCase,
  on: CaseExploreOptions['on'],
): Promise<Backend | { readonly note: string }> {
  try {
    return await memoryBackend(prepared);
  } catch (error) {
    const isOnlyOnGit = error instanceof RepriseError && error.code === 'CANNOT_EXPLORE';
    if (!isOnlyOnGit || on === 'memory') throw error;
    return { note: error.message };
  }
}

/** Reports a failure of the model only if real git confirms it; otherwise reports drift. */
async function reported({ memory, git }: ExplorerPair): Promise<Pick<CaseExploration, 'failure' | 'drift'>> {
  if (git.failure) return { failure: await shortenInMemory({ memory, git }, git.failure) };
  if (!memory.failure) return {};
  if (aboutOf(memory.failure) === 'chance') return { failure: memory.failure };
  const failure = await shortest(memory, memory.failure);
  const { isTrue, verdict } = await isConfirmed(git, failure);
  if (isTrue) return { failure };
  const long = await isConfirmed(git, memory.failure);
  if (long.isTrue) return { failure: await shortest(git, memory.failure) };
  return { drift: { failure, onGit: describeVerdict(verdict) } };
}

/** Minimizes failures that depend on the order. Other failures show equally well in any schedule. */
const shortest = async (explorer: CaseExplorer, failure: Failure): Promise<Failure> =>
  aboutOf(failure) === 'order' ? shorten(explorer, failure) : failure;

/** Minimizes a failure of real git in memory if it fails there too, because memory can try many more schedules. */
async function shortenInMemory({ memory, git }: ExplorerPair, failure: Failure): Promise<Failure> {
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
): Promise<{ readonly isTrue: boolean; readonly verdict: ScheduleVerdict }> {
  const { verdict } = await explorer.retry(
    { policy: followStrictly(trace, { isCalm, goesOn: true }), adversity },
    { comparesOrders: isAboutOrders(what) },
  );
  return { isTrue: verdict.kind === 'failed' && verdict.what === what, verdict };
}

const describeVerdict = (verdict: ScheduleVerdict): string => {
  switch (verdict.kind) {
    case 'failed':
      return verdict.message;
    case 'inconclusive':
      return verdict.why;
    default:
      return verdict.kind;
  }
};
