import type { Timestamp } from '../core/time.ts';
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
