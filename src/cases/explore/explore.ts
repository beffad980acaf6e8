import { RepriseError } from '../../core/errors.ts';
import { followStrictly } from '../../effects/explore/minimise.ts';
import type { Verdict } from '../../effects/explore/schedule.ts';
import { aboutOf } from '../../testing/explore/about.ts';
import { isAboutOrders } from '../../testing/explore/endings.ts';
import { gitTheatre } from '../../testing/explore/git-theatre.ts';
import { failsToo, shorten } from '../../testing/explore/shorten.ts';
import type { Theatre } from '../../testing/explore/theatre.ts';
import { readCase } from '../../testing/manifest/read-case.ts';
import type { TestContext } from '../context.ts';
import type { FoundCase } from '../manifest/find.ts';
import { memoryTheatre } from './backends.ts';
import type { Exploration, ExploreOptions, Failure } from './contract.ts';
import { CaseExplorer } from './explorer.ts';
import { type PreparedCase, prepareCase } from './prepare.ts';

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

export interface Drift {
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
