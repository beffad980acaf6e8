import {
  type HandOver,
  handingOver,
  type Landing,
  type LandingSteps,
  landing,
} from '../../git/landing/landing.ts';
import type { Unit } from '../../git/orders.ts';
import type { Lease } from '../../store/port.ts';
import type { ShellCommand } from '../../workflow/model.ts';
import { attemptFileName } from '../log-files.ts';
import type { WorkEffects } from '../step/effects.ts';

/** A landing, as data. */
export interface LandingRequest {
  readonly runId: string;
  readonly lease: Lease;
  readonly unit: Unit;
  readonly branch: string;
  readonly onto: string;
  /** What has to pass in a checkout of the result. */
  readonly verify?: ShellCommand | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** Without which it may not be landed any more. */
  readonly claim?: { readonly task: string; readonly token: number } | undefined;
}

/** Lands a branch, effect by effect. A cancellation reaches it while it waits for its turn, and while it is verified. */
export function landBranch(effects: WorkEffects, request: LandingRequest): Promise<Landing> {
  const { branch, onto } = request;
  return landing(
    {
      ...stepsOf(effects, request),
      prepare: () => effects.prepareLanding({ ...refOf(request), branch, onto }),
      move: ready => effects.moveLanding({ ...orderOf(request), ready }),
    },
    { source: { branch }, onto },
  );
}

/** Makes a branch ready for somebody else to land, in the same way; what is landed on stays where it is. */
export function prepareBranch(effects: WorkEffects, request: LandingRequest): Promise<HandOver> {
  const { branch, onto } = request;
  return handingOver(
    {
      ...stepsOf(effects, request),
      prepare: () => effects.prepareLanding({ ...refOf(request), branch, onto, leavesBranch: true }),
      confirm: ready => effects.confirmLanding({ ...orderOf(request), ready }),
    },
    { source: { branch }, onto },
  );
}

const refOf = ({ runId, lease, unit }: LandingRequest) => ({
  key: `${runId}:${attemptFileName(unit)}`,
  lease,
});

const orderOf = (request: LandingRequest) => {
  const { runId, branch, onto, claim } = request;
  return { ...refOf(request), runId, branch, onto, ...(claim && { claim }) };
};

function stepsOf(
  effects: WorkEffects,
  request: LandingRequest,
): Pick<LandingSteps, 'lock' | 'verify' | 'unlock'> {
  const { runId, unit, branch, verify: command, env } = request;
  const ref = refOf(request);
  return {
    lock: () => effects.lockLanding({ ...ref, unit }),
    verify:
      command &&
      (({ commit }) => effects.verifyLanding({ ...ref, runId, unit, branch, commit, command, env })),
    unlock: () => effects.unlockLanding(ref.key),
  };
}
