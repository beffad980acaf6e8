import { accessSync, constants, lstatSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import type { InitFile } from './templates.ts';

/** How a file that is to be made is found. */
export type Found =
  | { readonly kind: 'missing' }
  /** An example that is not needed: its folder holds others. */
  | { readonly kind: 'not-needed' }
  | { readonly kind: 'same' }
  | { readonly kind: 'different' }
  /** It can be neither made nor read. */
  | { readonly kind: 'blocked'; readonly why: string };

/** Looks at the place of a file below the top of a repository, and changes nothing. */
export function survey({ path, text, isExample = false }: InitFile, root: string): Found {
  const blocked = blockedOnTheWay(path, root);
  if (blocked !== undefined) return { kind: 'blocked', why: blocked };
  const file = join(root, path);
  if (!isThere(file)) return { kind: isExample && hasOthers(file) ? 'not-needed' : 'missing' };
  try {
    if (!statSync(file).isFile()) return { kind: 'blocked', why: `${path} is not a file` };
    return { kind: readFileSync(file, 'utf8') === text ? 'same' : 'different' };
  } catch (error) {
    return { kind: 'blocked', why: `${path} cannot be read: ${codeOf(error)}` };
  }
}

/** What stands where a folder of the path should be, or makes it impossible to write there. */
function blockedOnTheWay(path: string, root: string): string | undefined {
  const folders = path.split('/').slice(0, -1);
  let deepest = root;
  for (const [depth] of folders.entries()) {
    const folder = join(root, ...folders.slice(0, depth + 1));
    if (!isThere(folder)) break;
    const shown = relative(root, folder);
    try {
      if (!statSync(folder).isDirectory()) return `${shown} is not a folder`;
      if (isOutside(realpathSync(folder), realpathSync(root)))
        return `${shown} leads to another place, outside of the repository`;
    } catch (error) {
      return `${shown} cannot be followed: ${codeOf(error)}`;
    }
    deepest = folder;
  }
  try {
    accessSync(deepest, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return `nothing can be written into ${relative(root, deepest) || 'the top of the repository'}: ${codeOf(error)}`;
  }
}

const isOutside = (folder: string, root: string): boolean => /^\.\.(\/|$)/.test(relative(root, folder));

/** Also a link that leads nowhere is in the way. */
const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

function hasOthers(file: string): boolean {
  if (!isThere(dirname(file))) return false;
  return readdirSync(dirname(file)).some(name => !name.startsWith('.') && name !== basename(file));
}

/** `EACCES`, or whatever else there is to say. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : String(error);
