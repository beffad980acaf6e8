import { lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';

const mostLinks = 40;

/**
 * The path that the system would really touch: symbolic links are followed, also those that lead to nothing yet.
 * What does not exist is resolved as far as it does.
 */
export function realPathOf(path: string, cwd: string): string {
  return follow(resolve(cwd, path), mostLinks);
}

function follow(path: string, links: number): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    if (parent === path) return path;
    const here = join(follow(parent, links), basename(path));
    const target = links > 0 ? linkTarget(here) : undefined;
    return target === undefined ? here : follow(target, links - 1);
  }
}

/** Writing through a link that dangles creates the file at its other end. */
function linkTarget(path: string): string | undefined {
  try {
    if (!lstatSync(path).isSymbolicLink()) return undefined;
    const target = readlinkSync(path);
    return isAbsolute(target) ? target : join(dirname(path), target);
  } catch {
    return undefined;
  }
}
