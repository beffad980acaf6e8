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
export type {
  AcquireRequest,
  AcquireResult,
  Batch,
  EventStore,
  Fence,
  InboxEntry,
  Lease,
  NewRun,
  Owner,
  RunStatus,
  RunSummary,
} from './port.ts';
export { outcomeOf, type WorkerRecord } from './runs.ts';
