import { byTask, type Decision, decideClaim, decideSettlement, isHeldBy } from './claiming.ts';
import type { Claim, ClaimStore } from './claims.ts';
import type { Fence, RunStatus } from './port.ts';

interface Runs {
  /** Throws RUN_NOT_FOUND. */
  readonly statusOf: (runId: string) => RunStatus;
  /** Throws FENCED, RUN_NOT_FOUND. */
  readonly check: (fence: Fence) => void;
}

/** Claims that live and die with the process. */
export function memoryClaims({ statusOf, check }: Runs) {
  const claims = new Map<string, Claim>();
  let revision = 0;

  const asOfNow = (claim: Claim): Claim => ({
    ...claim,
    runStatus: claim.runId === null || claim.state !== 'held' ? null : statusOf(claim.runId),
  });
  const heldBy = (runId: string): readonly Claim[] =>
    [...claims.values()].filter(claim => claim.runId === runId && claim.state === 'held');
  const current = (task: string): Claim | undefined => {
    const claim = claims.get(task);
    return claim && asOfNow(claim);
  };
  const carryOut = <Answer>({ answer, kept }: Decision<Answer>): Answer => {
    if (kept) {
      claims.set(kept.task, kept);
      revision += 1;
    }
    return answer;
  };

  const store: ClaimStore = {
    async take(request) {
      if (request.fence) check(request.fence);
      const runStatus = request.runId === null ? null : statusOf(request.runId);
      return carryOut(decideClaim(current(request.task), request, runStatus));
    },

    async settle(settlement) {
      if (settlement.fence) check(settlement.fence);
      return carryOut(decideSettlement(current(settlement.task), settlement));
    },

    async list() {
      return [...claims.values()].map(asOfNow).sort(byTask);
    },

    async isHeld(claim) {
      return isHeldBy(current(claim.task), claim);
    },

    async revision() {
      return revision;
    },
  };

  return {
    store,
    revision: () => revision,
    tasksOf: (runId: string) =>
      heldBy(runId)
        .map(({ task }) => task)
        .sort(),
    /** To be told when the status of a run has changed. */
    followRun(runId: string): void {
      if (heldBy(runId).length > 0) revision += 1;
    },
  };
}
