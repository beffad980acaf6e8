import { RepriseError, type Timestamp } from '../core/index.ts';
import type { Fence, RunStatus } from './port.ts';

/**
 * Who works on which task. A task has a token that grows with every claim, and a claim names the token that the claimant
 * has seen: of several that saw the same, one wins. What was claimed before with an older token cannot be settled any more.
 */
export interface ClaimStore {
  /**
   * Takes a task if its token is still `seen` and nobody holds it. A run that asks again for what it holds is given the
   * same claim. In one transaction. Throws RUN_NOT_FOUND and RUN_ENDED, FENCED if the lease of the fence does not count any
   * more, and STORE_FAILED if a token was seen that this store never gave.
   */
  take(request: ClaimRequest): Promise<ClaimResult>;

  /**
   * Says what became of a claim. `false`: the task has another token by now, or was settled in another way, and nothing
   * was changed. To say the same again changes nothing either, and is `true`: whoever died after saying it may repeat it.
   * Without a token it is said of whatever claim there is, settled or not; `false` if there is none. Throws FENCED, having
   * changed nothing, if the lease of the fence does not count any more.
   */
  settle(settlement: Settlement): Promise<boolean>;

  /** Every task that was ever claimed, by name. */
  list(): Promise<readonly Claim[]>;

  /** Whether the claim is held with this token by this run. */
  isHeld(claim: Pick<Claim, 'task' | 'token'> & { readonly runId: string }): Promise<boolean>;

  /** Grows with every change of a claim, also when its run ends or goes on. */
  revision(): Promise<number>;
}

export interface ClaimRequest {
  readonly task: string;
  /** The token that the claimant has seen; 0 if nobody ever claimed the task. */
  readonly seen: number;
  /** What the text of the task was when it was claimed. */
  readonly version: string;
  /** The run that works on it; `null` for a person. */
  readonly runId: string | null;
  /** A worker, or a person. */
  readonly by: string;
  readonly at: Timestamp;
  /** Keeps somebody out who was taken for dead: the run may be at work on the claim again, in other hands. */
  readonly fence?: Fence | undefined;
}

export type ClaimResult =
  | { readonly kind: 'claimed'; readonly claim: Claim }
  /** Somebody else was faster, or still holds it. */
  | { readonly kind: 'taken'; readonly claim: Claim };

/** `delivered`: on a branch of its own, for somebody else to land. */
export const claimStates = ['held', 'landed', 'delivered', 'parked', 'failed', 'released'] as const;
export type ClaimState = (typeof claimStates)[number];

export interface Claim {
  readonly task: string;
  readonly token: number;
  readonly state: ClaimState;
  readonly version: string;
  readonly runId: string | null;
  /**
   * How the run stands that holds it; `null` if that is a person, or if it is settled. A claim whose run has ended is held
   * by nobody.
   */
  readonly runStatus: RunStatus | null;
  readonly by: string;
  /** When it was claimed or settled last. */
  readonly at: Timestamp;
  /** Why it was released, failed or parked. */
  readonly reason?: string | undefined;
  /** Of what landed. */
  readonly commit?: string | undefined;
  /** Where the work is if it did not land. */
  readonly branch?: string | undefined;
}

export interface Settlement {
  readonly task: string;
  /** Of the claim that is settled; without one, whatever there is. */
  readonly token?: number | undefined;
  readonly state: Exclude<ClaimState, 'held'>;
  readonly at: Timestamp;
  readonly fence?: Fence | undefined;
  readonly reason?: string | undefined;
  readonly commit?: string | undefined;
  readonly branch?: string | undefined;
}

/** Whether somebody works on it. */
export const isHeld = ({ state, runId, runStatus }: Claim): boolean =>
  state === 'held' && (runId === null || runStatus === 'running' || runStatus === 'suspended');

/** What a store answers, and the claim that it has to keep from then on, if anything changes. */
export interface ClaimDecision<Answer> {
  readonly answer: Answer;
  readonly kept?: Claim;
}

/**
 * Who gets the task. `current` is the claim that there is, `runStatus` how the run stands that asks, `null` for a person.
 * Throws RUN_ENDED, and STORE_FAILED if the claimant has seen a token that this store never gave.
 */
export function decideClaim(
  current: Claim | undefined,
  request: ClaimRequest,
  runStatus: RunStatus | null,
): ClaimDecision<ClaimResult> {
  const { task, seen, version, runId, by, at } = request;
  const claim: Claim = { task, token: seen + 1, state: 'held', version, runId, runStatus, by, at };
  // A claim for a run that has ended would be held by nobody.
  if (!isHeld(claim)) throw runHasEnded(request, runStatus);
  if (current && runId !== null && current.runId === runId && isHeld(current)) {
    return { answer: { kind: 'claimed', claim: current } };
  }
  if (current && (current.token !== seen || isHeld(current))) {
    return { answer: { kind: 'taken', claim: current } };
  }
  if (!current && seen !== 0) throw neverGiven(request);
  return { answer: { kind: 'claimed', claim }, kept: claim };
}

/** What becomes of the claim that there is. */
export function decideSettlement(
  current: Claim | undefined,
  { task, token, state, at, reason, commit, branch }: Settlement,
): ClaimDecision<boolean> {
  if (!current) return { answer: false };
  if (token !== undefined && (token !== current.token || current.state !== 'held')) {
    // Said by a process that died before it could note that it had said it.
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

/** Whether this very claim is still held. */
export const isHeldBy = (
  current: Claim | undefined,
  { token, runId }: { readonly token: number; readonly runId: string },
): boolean => current !== undefined && current.token === token && current.runId === runId && isHeld(current);

/** By the name of the task; the same order whatever a database takes for one. */
export const byTask = (a: Claim, b: Claim): number => (a.task < b.task ? -1 : a.task > b.task ? 1 : 0);

const runHasEnded = ({ task, runId }: ClaimRequest, runStatus: RunStatus | null): RepriseError =>
  new RepriseError('RUN_ENDED', `run ${runId} has ended (${runStatus}) and cannot claim task ${task}`, {
    hint: `go on with it first: reprise resume ${runId}`,
  });

const neverGiven = ({ task, seen }: ClaimRequest): RepriseError =>
  new RepriseError(
    'STORE_FAILED',
    `nobody ever claimed task ${task} in this store, but token ${seen} was seen`,
    {
      hint: 'the store was replaced in between: look at the tasks again',
    },
  );
