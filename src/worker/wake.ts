import { toEpochMs } from '../core/time.ts';
import type { Environment } from '../engine/environment.ts';
import type { RunSummary } from '../store/port.ts';
import { workerWorkflow } from './contract.ts';

/** How things stood when somebody last looked. */
export interface Seen {
  /** Of the branch. */
  readonly main: string | null;
  /** Of the claims. */
  readonly revision: number;
  /** What a command printed, if one lists the tasks. */
  readonly listed?: string | undefined;
}

/** What is different from what was seen. */
export type Change = 'main' | 'claims' | 'tasks' | 'abandoned';

export interface Difference {
  readonly seen: Seen;
  /** By which leases are judged. */
  readonly now: number;
}

/** What a sleeping worker looks at. */
export interface Standing {
  readonly main: string | null;
  readonly revision: number;
  /** Runs of workers that nobody is at work on any more. */
  readonly abandoned: readonly string[];
}

/** `null` as long as all is as it was. */
export function differenceFrom(seen: Seen, { main, revision, abandoned }: Standing): Change | null {
  if (main !== seen.main) return 'main';
  if (revision !== seen.revision) return 'claims';
  return abandoned.length > 0 ? 'abandoned' : null;
}

/** The runs among which abandoned ones are to be found. */
export const unfinished = { workflow: workerWorkflow, status: 'running' } as const;

type Judge = Pick<Environment, 'self' | 'isAlive'> & { readonly now: number };

/** Those that nobody is at work on any more, oldest first. */
export const abandonedAmong = (runs: readonly RunSummary[], judge: Judge): readonly string[] =>
  runs
    .filter(run => isAbandoned(run, judge))
    .map(({ runId }) => runId)
    .reverse();

const isAbandoned = ({ owner }: RunSummary, { self, isAlive, now }: Judge): boolean =>
  owner === null || toEpochMs(owner.expiresAt) <= now || (owner.host === self.host && !isAlive(owner));

/**
 * The same as somebody who decides at once has to see it: `main` is where the branch is, `undefined` if that cannot be
 * told without asking git. A store that cannot tell at once is taken for changed.
 */
export function isDifferent(
  seen: Seen,
  { store, ...judge }: Judge & Pick<Environment, 'store'>,
  main: string | null | undefined,
): boolean {
  const { glance } = store;
  if (!glance || main === undefined) return true;
  const abandoned = abandonedAmong(glance.list(unfinished), judge);
  return differenceFrom(seen, { main, revision: glance.revision(), abandoned }) !== null;
}
