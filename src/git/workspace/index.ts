export {
  deliverOnBranch,
  type ParkedWork,
  parkedWork,
  parkOnBranch,
  readBranchRecord,
} from './branch-records.ts';
export { worktreeStatus } from './commit.ts';
export { createWorkspace } from './create.ts';
export { gitInside, privateGitDir, worktreeEntries } from './entries.ts';
export { type Removal, removeWorkspace } from './remove.ts';
export { resetWorkspace } from './reset.ts';
export { changesIn, isSetUp, markSetUp, type SaveRequest, saveWork, type WorkFolder } from './save.ts';
