export { giveUp, layOut, takeSolution } from './conflicts.ts';
export type { FileClash, ThreeTrees } from './history.ts';
export {
  confirmLanding,
  isLandingFree,
  lockLanding,
  moveLanding,
  prepareLanding,
  unlockLanding,
  verifyLanding,
} from './landing.ts';
export { loadPacks, modelOf } from './load.ts';
export { branchesIn, branchRef, type Model, type ModelWorktree, takePorts } from './repository.ts';
export {
  changesIn,
  createWorkspace,
  keepOnBranch,
  markSetUp,
  patchOf,
  removeWorkspace,
  resetWorkspace,
  resolveBase,
  saveWork,
  thereAt,
} from './workspaces.ts';
