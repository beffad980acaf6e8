import { RepriseError, type Timestamp } from '../core/index.ts';
import type { Fence, RunStatus } from './port.ts';
import { isOpen } from './runs.ts';

/**
 * Claims on tasks. A task has a fencing token that grows with every claim. A claim request names the token that the
 * claimant has seen, so one of several claimants wins. A claim with an older token can no longer be settled.
 */
export interface ClaimStore {
  /**
   * Claims a task in one transaction if its token is still `seen` and the task is not held. A run that already holds
   * the task gets its existing claim. Throws RUN_NOT_FOUND, RUN_ENDED, FENCED if the lease of the fence is no longer
   * valid, and STORE_FAILED if this store never issued the token.
   */
  take(request: ClaimRequest): Promise<ClaimResult>;

  /**
   * Settles a claim. Returns `false`, and changes nothing, if the task has another token by now or was settled with
   * another state. Idempotent: repeating the same state, for example after a crash, returns `true`.
   * Without a token it settles the current claim, even if that is settled already; `false` if there is none.
   * Throws FENCED, and changes nothing, if the lease of the fence is no longer valid.
   */
  settle(settlement: Settlement): Promise<boolean>;

  /** Lists the latest claim of every task that was ever claimed, sorted by task. */
  list(): Promise<readonly Claim[]>;

  /** Returns whether this run holds the claim with this token. */
  isHeld(claim: Pick<Claim, 'task' | 'token'> & { readonly runId: string }): Promise<boolean>;

  /** Number that grows with every change of a claim, and when the run of a held claim ends or resumes. */
  revision(): Promise<number>;
}

export interface ClaimRequest {
  readonly task: string;
  /** Token that the claimant has seen; 0 if the task was never claimed. */
  readonly seen: number;
  /** Version of the task at the time of the claim. */
  readonly version: string;
  /** Run that works on the task; `null` for a person. */
  readonly runId: string | null;
  /** Name of the worker or person. */
  readonly by: string;
  readonly at: Timestamp;
  /** Fences out a process that was presumed dead and whose run has another owner now. */
  readonly fence?: Fence | undefined;
}

export type ClaimResult =
  | { readonly kind: 'claimed'; readonly claim: Claim }
  /** Another claimant was first, or still holds the task. */
  | { readonly kind: 'taken'; readonly claim: Claim };

/** `delivered`: left on a branch, to be landed outside of Reprise. */
export const claimStates = ['held', 'landed', 'delivered', 'parked', 'failed', 'released'] as const;
export type ClaimState = (typeof claimStates)[number];

export interface Claim {
  readonly task: string;
  /** Project of the task, if the store was opened for all projects. */
  readonly project?: string | undefined;
  readonly token: number;
  readonly state: ClaimState;
  readonly version: string;
  readonly runId: string | null;
  /**
   * Status of the run that holds the claim; `null` if a person holds it or it is settled. A claim whose run has ended is
   * no longer held.
   */
  readonly runStatus: RunStatus | null;
  readonly by: string;
  /** Time at which the task was last claimed or settled. */
  readonly at: Timestamp;
  /** Reason why the task was released, failed or parked. */
  readonly reason?: string | undefined;
  /** Commit that landed. */
  readonly commit?: string | undefined;
  /** Branch with the work if it did not land. */
  readonly branch?: string | undefined;
}

export interface Settlement {
  readonly task: string;
  /** Token of the claim to settle. Defaults to that of the current claim. */
  readonly token?: number | undefined;
  readonly state: Exclude<ClaimState, 'held'>;
  readonly at: Timestamp;
  readonly fence?: Fence | undefined;
  readonly reason?: string | undefined;
  readonly commit?: string | undefined;
  readonly branch?: string | undefined;
}

/** Whether a person or an unfinished run holds the claim. */
export const isHeld = ({ state, runId, runStatus }: Claim): boolean =>
  state === 'held' && (runId === null || isOpen(runStatus));

/** Answer of the store, with the claim to store if it changes. */
export interface ClaimDecision<Answer> {
  readonly answer: Answer;
  readonly kept?: Claim;
}

/**
 * Decides a claim request. `current` is the current claim; `runStatus` is the status of the claimant's run, `null` for a
 * person. Throws RUN_ENDED, and STORE_FAILED if this store never issued the token.
 */
export function decideClaim(
  current: Claim | undefined,
  request: ClaimRequest,
  runStatus: RunStatus | null,
): ClaimDecision<ClaimResult> {
  const { task, seen, version, runId, by, at } = request;
  const claim: Claim = { task, token: seen + 1, state: 'held', version, runId, runStatus, by, at };
  // The claim of a run that has ended would not be held.
  if (!isHeld(claim)) throw runHasEnded(request, runStatus);
  if (current && runId !== null && current.runId === runId && isHeld(current)) {
    return { answer: { kind: 'claimed', claim: current } };
  }
  if (current && (current.token !== seen || isHeld(current))) {
    return { answer: { kind: 'taken', claim: current } };
  }
  if (!current && seen !== 0) throw neverIssued(request);
  return { answer: { kind: 'claimed', claim }, kept: claim };
}

/** Decides a settlement of the current claim. */
export function decideSettlement(
  current: Claim | undefined,
  { task, token, state, at, reason, commit, branch }: Settlement,
): ClaimDecision<boolean> {
  if (!current) return { answer: false };
  if (token !== undefined && (token !== current.token || current.state !== 'held')) {
    // A process may repeat a settlement if it crashed before it recorded the answer.
    return { answer: token === current.token && state === current.state };
  }
  const { version, runId, by } = current;
  return {
    answer: true,
    kept: {
      ...{ task, token: current.token, state, version, runId, runStatus: null, by, at },
      ...(reason !== undefined && { reason }),
      ...(commit !== undefined && { commit }),
      ...(branch !== undefined && { branch }),
    },
  };
}

/** Whether the run still holds the claim with this token. */
export const isHeldBy = (
  current: Claim | undefined,
  { token, runId }: { readonly token: number; readonly runId: string },
): boolean => current !== undefined && current.token === token && current.runId === runId && isHeld(current);

/** Sorts by task in the same order for every store, whatever the collation of its database. */
export const byTask = (a: Claim, b: Claim): number => (a.task < b.task ? -1 : a.task > b.task ? 1 : 0);

const runHasEnded = ({ task, runId }: ClaimRequest, runStatus: RunStatus | null): RepriseError =>
  new RepriseError('RUN_ENDED', `run ${runId} has ended (${runStatus}) and cannot claim task ${task}`, {
    hint: `resume it first: reprise resume ${runId}`,
  });

const neverIssued = ({ task, seen }: ClaimRequest): RepriseError =>
  new RepriseError(
    'STORE_FAILED',
    `task ${task} was never claimed in this store, so token ${seen} is not valid`,
    {
      hint: 'the store was replaced: list the tasks again',
    },
  );
