import { followStrictly } from '../../conductor/explore/follow.ts';
import type { Verdict } from '../../conductor/explore/move.ts';
import { RepriseError } from '../../core/errors.ts';
import type { TestContext } from '../context.ts';
import type { FoundCase } from '../manifest/find.ts';
import { readCase } from '../manifest/read-case.ts';
import { CaseExplorer, type Exploration, type ExploreOptions, type Failure } from './explore-case.ts';
import { gitTheatre } from './git-theatre.ts';
import { memoryTheatre } from './memory-theatre.ts';
import { type PreparedCase, prepareCase } from './prepared-case.ts';
import type { Theatre } from './theatre.ts';

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
  const memory = on === 'git' ? undefined : await inMemory(prepared, on);
  const git = gitTheatre(prepared);
  if (!memory || 'note' in memory) {
    const explored = await new CaseExplorer(prepared, git, options).explore();
    return { worlds: [explored], failure: explored.failure, note: memory?.note };
  }
  const share = on === 'memory' ? 1 : memoryShare;
  const first = await new CaseExplorer(prepared, memory, within(options, share)).explore();
  if (first.failure) {
    const explorer = new CaseExplorer(prepared, git, options);
    return { worlds: [first], ...(await confirmed(explorer, first.failure)) };
  }
  if (on === 'memory') return { worlds: [first] };
  const left = Math.max(0, options.forMs - first.elapsedMs);
  const second = await new CaseExplorer(prepared, git, { ...options, forMs: left }).explore();
  return { worlds: [first, second], failure: second.failure };
}

/** Of the time; the rest is for git. */
const memoryShare = 0.5;

const within = (options: ExploreOptions, share: number): ExploreOptions => ({
  ...options,
  forMs: options.forMs * share,
});

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
async function confirmed(
  explorer: CaseExplorer,
  failure: Failure,
): Promise<Pick<CaseExploration, 'failure' | 'drift'>> {
  const { trace, isCalm, adversity, what } = failure;
  const { verdict } = await explorer.retry({ policy: followStrictly(trace, { isCalm }), adversity });
  if (verdict.kind === 'failed' && verdict.what === what) return { failure };
  return { drift: { failure, onGit: wordsOf(verdict) } };
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
