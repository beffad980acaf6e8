import { RepriseError } from '../core/errors.ts';
import { type Timestamp, toEpochMs } from '../core/time.ts';
import type { AcquireRequest, AcquireResult, Batch, Lease, Owner } from './port.ts';

/** How a run stands when somebody wants to write to it. */
export interface Standing {
  readonly epoch: number;
  /** Of the owner; null when the run was released. */
  readonly incarnation: string | null;
}

export type Holder = Owner & { readonly expiresAt: Timestamp };

export const holds = (standing: Standing, lease: Lease): boolean =>
  standing.epoch === lease.epoch && standing.incarnation === lease.incarnation;

/** Throws FENCED if the lease is not the one that counts. */
export function checkLease(runId: string, standing: Standing, lease: Lease): void {
  if (holds(standing, lease)) return;
  const now = standing.incarnation === null ? 'was released' : `belongs to ${standing.incarnation}`;
  throw new RepriseError(
    'FENCED',
    `run ${runId} ${now} (epoch ${standing.epoch}); ${lease.incarnation} held epoch ${lease.epoch}`,
    { hint: 'another process goes on with the run; nothing was written' },
  );
}

/** Throws FENCED or SEQUENCE_CONFLICT. */
export function checkBatch(batch: Batch, standing: Standing & { readonly lastSeq: number }): void {
  checkLease(batch.runId, standing, batch.lease);
  if (standing.lastSeq === batch.expectedSeq) return;
  throw new RepriseError(
    'SEQUENCE_CONFLICT',
    `the history of run ${batch.runId} ends at event ${standing.lastSeq}, not at ${batch.expectedSeq}`,
    { hint: 'read the history again before appending to it' },
  );
}

/** Who stands in the way of taking the run; `undefined` when nobody does. */
export function whoHolds(
  holder: Holder | null,
  { now, provablyDead }: AcquireRequest,
): Extract<AcquireResult, { kind: 'held' }> | undefined {
  if (!holder || holder.incarnation === provablyDead) return undefined;
  if (toEpochMs(holder.expiresAt) <= toEpochMs(now)) return undefined;
  const { incarnation, host, pid, processStart, expiresAt } = holder;
  return { kind: 'held', owner: { incarnation, host, pid, processStart }, expiresAt };
}

export const runNotFound = (runId: string): RepriseError =>
  new RepriseError('RUN_NOT_FOUND', `no run ${runId} in this store`, {
    hint: 'see which runs there are: reprise list',
  });

export const runIdTaken = (runId: string): RepriseError =>
  new RepriseError('SEQUENCE_CONFLICT', `there is already a run ${runId}`, { hint: 'use another run id' });
