export {
  deliverOnBranch,
  type ParkedWork,
  parkedWork,
  parkOnBranch,
  readBranchRecord,
} from './branch-records.ts';
export { worktreeStatus } from './commit.ts';
export { createWorkspace } from './create.ts';
export { allWorktrees, gitDirOf, gitInside, worktreeEntries } from './entries.ts';
export { type Removal, removeWorkspace } from './remove.ts';
export { resetWorkspace } from './reset.ts';
export {
  changesIn,
  lostBranches,
  markSetUp,
  type SavedWork,
  type SaveRequest,
  saveWork,
  syncWork,
  type WorkFolder,
} from './save.ts';
