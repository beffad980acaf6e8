import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** State folder of a temporary project, relative to its root, which is not a linked worktree. */
export const stateOf = (root: string): string =>
  existsSync(join(root, '.git')) ? '.git/reprise' : '.reprise/state';
