import { lstatSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readIfThere } from './files.ts';

/** Where a checkout and its git folder are. */
export interface PlainRepository {
  readonly root: string;
  readonly commonDir: string;
}

/**
 * The repository whose top a folder is, if it is laid out as `git init` does it and belongs to whoever asks: that is
 * what git itself would find. `undefined` means that git has to be asked.
 */
export function plainRepositoryAt(folder: string): PlainRepository | undefined {
  try {
    const root = realpathSync(folder);
    const commonDir = join(root, '.git');
    const parts = [root, commonDir, join(commonDir, 'objects'), join(commonDir, 'refs')];
    const isOwn = parts.map(path => lstatSync(path)).every(stat => stat.isDirectory() && isOurs(stat.uid));
    return isOwn && hasPlainSettings(commonDir) && hasHead(commonDir) ? { root, commonDir } : undefined;
  } catch {
    return undefined;
  }
}

/** Where the first checkout of a repository is; `undefined` means that git has to be asked. */
export const plainRootOf = (commonDir: string): string | undefined => {
  const root = dirname(commonDir);
  return commonDir === join(root, '.git') && hasPlainSettings(commonDir) ? root : undefined;
};

const isOurs = (uid: number): boolean => uid === process.geteuid?.();

const hasHead = (commonDir: string): boolean =>
  /^(ref: refs\/|[0-9a-f]{40})/.test(readIfThere(join(commonDir, 'HEAD')) ?? '');

/** Settings, or settings elsewhere, that could have files, refs or objects in another place. */
const unusual =
  /\b(include|includeif|extensions|worktree|sparsecheckout)\b|\bbare\b(?!\s*=\s*false\s*$)|\brepositoryformatversion\b(?!\s*=\s*0\s*$)/im;

function hasPlainSettings(commonDir: string): boolean {
  const config = readIfThere(join(commonDir, 'config'));
  return (
    config !== undefined && !unusual.test(config) && readIfThere(join(commonDir, 'commondir')) === undefined
  );
}
