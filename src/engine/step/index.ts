export { fenced, firstLine, workVariables } from './commands.ts';
export type { BuiltInWork, KnownSession, Transition, WorkLane } from './contract.ts';
export { artifactFile, artifactFolder, scratchFolder, type WorkEffects } from './effects.ts';
export {
  approvedFiles,
  askFor,
  endedData,
  isRefused,
  type LandedBranch,
  type LandingRequest,
  landBranch,
  landedBefore,
  landedNow,
  prepareBranch,
  rejectionOf,
  whatHappened,
} from './landing.ts';
export { mayLand, verificationOf } from './landing-effects.ts';
export { bestEffort, failedWith, type WorkOutcome } from './outcome.ts';
export { openOnce, type RepositoryOnce, requireOwner, withoutFence } from './taping.ts';
export type { PinnedBase, StepWork } from './work.ts';
export type { WorkLocation } from './workspace.ts';
export { folderKey, landedKey, refKey, tipOfBranch } from './workspace-effects.ts';
