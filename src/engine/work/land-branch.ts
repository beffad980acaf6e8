import { type Landing, landing } from '../../git/landing.ts';
import type { Lease } from '../../store/port.ts';
import type { ShellCommand } from '../../workflow/model.ts';
import { attemptFileName } from '../log-files.ts';
import type { WorkEffects } from './effects.ts';
import type { Unit } from './port.ts';

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
  const { runId, lease, unit, branch, onto, verify: command, env, claim } = request;
  const ref = { key: `${runId}:${attemptFileName(unit)}`, lease };
  return landing(
    {
      lock: () => effects.lockLanding({ ...ref, unit }),
      prepare: () => effects.prepareLanding({ ...ref, branch, onto }),
      verify:
        command &&
        (({ commit }) => effects.verifyLanding({ ...ref, runId, unit, branch, commit, command, env })),
      move: ready => effects.moveLanding({ ...ref, runId, branch, onto, ready, ...(claim && { claim }) }),
      unlock: () => effects.unlockLanding(ref.key),
    },
    { source: { branch }, onto },
  );
}
