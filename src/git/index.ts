export { anyChanged, anyChangedNow, changesSince, diffOf } from './diff.ts';
export { makeRecentDurable, namesIn, parseRecord, readIfThere, syncPaths } from './files.ts';
export { createGit, type Git, gitNow } from './git.ts';
export { isOwnerAlive, proveAlive, stalledFor } from './liveness.ts';
export {
  type FolderLock,
  inTurn,
  isLockFree,
  type LockPatience,
  type LockState,
  lockFolder,
  readLock,
  repositoryLocks,
  stalledMs,
  stalledText,
  type TakenLock,
  takeRepositoryLock,
  tryLock,
  watchHolders,
} from './lock.ts';
export {
  committer,
  isBranchName,
  landingFolder,
  printable,
  safeSegment,
  workspaceBranch,
  workspacePath,
} from './names.ts';
export type {
  LockOrder,
  MoveOrder,
  PreparedWorkspace,
  PrepareOrder,
  VerifyOrder,
  WorkspaceOrder,
  WorkUnit,
} from './orders.ts';
export { findPortRange, type PortRange } from './ports.ts';
export {
  type Branches,
  branchesOf,
  branchTip,
  pushBranch,
  readHead,
  resolveBase,
  resolveCommit,
} from './refs.ts';
export { commonDirNow, locateNow, mainWorktreeNow, openRepository, type Repository } from './repository.ts';
