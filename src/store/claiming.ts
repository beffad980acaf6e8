import { RepriseError } from '../core/errors.ts';
import { type Claim, type ClaimRequest, type ClaimResult, isHeld, type Settlement } from './claims.ts';
import type { RunStatus } from './port.ts';

/** What a store answers, and the claim that it has to keep from then on, if anything changes. */
export interface Decision<Answer> {
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
): Decision<ClaimResult> {
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
): Decision<boolean> {
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
