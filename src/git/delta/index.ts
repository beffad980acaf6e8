export { applyDelta, isSameConflict } from './apply.ts';
export { type BasePack, packBase, packDelta, restoreBase } from './pack.ts';
export { patchOf } from './patch.ts';
export { objectEnvironment } from './shadow.ts';
export { carryRest, isSameBase, isSameStashes, newStashes, type WorktreeState } from './state.ts';
