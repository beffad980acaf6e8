export {
  type Claim,
  type ClaimRequest,
  type ClaimResult,
  type ClaimState,
  claimStates,
  isHeld,
  type Settlement,
} from './claims.ts';
export { memoryStore } from './memory.ts';
export {
  type AcquireRequest,
  type AcquireResult,
  type Batch,
  type EventStore,
  type Fence,
  type InboxEntry,
  type Lease,
  type NewRun,
  type Owner,
  type RunStatus,
  type RunSummary,
  topProject,
} from './port.ts';
export { outcomeOf, type WorkerRecord } from './runs.ts';
