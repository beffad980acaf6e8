import { toEpochMs } from '../core/index.ts';
import type { Environment } from '../engine/index.ts';
import type { RunSummary } from '../store/index.ts';
import { workerWorkflow } from './contract.ts';

/** How things stood when somebody last looked. */
export interface WakeSnapshot {
  /** Of the branch. */
  readonly main: string | null;
  /** Of the claims. */
  readonly revision: number;
  /** What a command printed, if one lists the tasks. */
  readonly listed?: string | undefined;
}

/** What is different from what was seen. */
export type WakeReason = 'main' | 'claims' | 'tasks' | 'abandoned';

export interface ChangeQuery {
  readonly seen: WakeSnapshot;
  /** By which leases are judged. */
  readonly now: number;
}

/** What a sleeping worker looks at. */
export interface WakeState {
  readonly main: string | null;
  readonly revision: number;
  /** Runs of workers that nobody is at work on any more. */
  readonly abandoned: readonly string[];
}

/** `null` as long as all is as it was. */
export function differenceFrom(
  seen: WakeSnapshot,
  { main, revision, abandoned }: WakeState,
): WakeReason | null {
  if (main !== seen.main) return 'main';
  if (revision !== seen.revision) return 'claims';
  return abandoned.length > 0 ? 'abandoned' : null;
}

/** The runs among which abandoned ones are to be found. */
export const unfinished = { workflow: workerWorkflow, status: 'running' } as const;

type LivenessContext = Pick<Environment, 'self' | 'isAlive'> & { readonly now: number };

/** Those that nobody is at work on any more, oldest first. */
export const abandonedAmong = (runs: readonly RunSummary[], judge: LivenessContext): readonly string[] =>
  runs
    .filter(run => isAbandoned(run, judge))
    .map(({ runId }) => runId)
    .reverse();

const isAbandoned = ({ owner }: RunSummary, { self, isAlive, now }: LivenessContext): boolean =>
  owner === null || toEpochMs(owner.expiresAt) <= now || (owner.host === self.host && !isAlive(owner));

/**
 * The same as somebody who decides at once has to see it: `main` is where the branch is, `undefined` if that cannot be
 * told without asking git. A store that cannot tell at once is taken for changed.
 */
export function isDifferent(
  seen: WakeSnapshot,
  { store, ...judge }: LivenessContext & Pick<Environment, 'store'>,
  main: string | null | undefined,
): boolean {
  const { glance } = store;
  if (!glance || main === undefined) return true;
  const abandoned = abandonedAmong(glance.list(unfinished), judge);
  return differenceFrom(seen, { main, revision: glance.revision(), abandoned }) !== null;
}
