import { type Dirent, mkdirSync, readdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

export interface Contents {
  /** All files that git would keep. */
  readonly files: readonly string[];
  /** Folders that belong to other repositories. */
  readonly gitlinks: ReadonlySet<string>;
}

/**
 * Folders in which there is no file at all, the innermost ones. Folders that hold only files that git ignores are not
 * looked through, so that large ones cost nothing.
 */
export function emptyFoldersIn(top: string, { files, gitlinks }: Contents): readonly string[] {
  const kept = foldersOf(files);
  const found: string[] = [];
  const visit = (folder: string): void => {
    for (const name of foldersAt(join(top, folder)).folders) {
      const path = folder === '' ? name : `${folder}/${name}`;
      if (kept.has(path)) visit(path);
      else if (path !== '.git' && !gitlinks.has(path)) found.push(...(hollow(top, path) ?? []));
    }
  };
  visit('');
  return found.sort();
}

function foldersOf(files: readonly string[]): ReadonlySet<string> {
  const folders = new Set<string>();
  for (const file of files) {
    for (let end = file.lastIndexOf('/'); end > 0; end = file.lastIndexOf('/', end - 1)) {
      const folder = file.slice(0, end);
      if (folders.has(folder)) break;
      folders.add(folder);
    }
  }
  return folders;
}

/** `undefined` as soon as one file is found. */
function hollow(top: string, path: string): readonly string[] | undefined {
  const { folders, hasFiles } = foldersAt(join(top, path));
  if (hasFiles) return undefined;
  if (folders.length === 0) return [path];
  const found: string[] = [];
  for (const name of folders) {
    const inner = hollow(top, `${path}/${name}`);
    if (inner === undefined) return undefined;
    found.push(...inner);
  }
  return found;
}

function foldersAt(path: string): { readonly folders: readonly string[]; readonly hasFiles: boolean } {
  let entries: readonly Dirent[];
  try {
    entries = readdirSync(path, { withFileTypes: true });
  } catch {
    // One that may not be read, or is gone meanwhile, is not called empty.
    return { folders: [], hasFiles: true };
  }
  const folders = entries.filter(entry => entry.isDirectory()).map(entry => entry.name);
  return { folders, hasFiles: folders.length < entries.length };
}

/** Makes those of `wanted`, and removes those of `current` that are not wanted as far as nothing is inside. */
export function setEmptyFolders(
  top: string,
  { current, wanted }: { current: readonly string[]; wanted: readonly string[] },
): void {
  const keep = new Set(wanted);
  for (const path of current) if (!keep.has(path)) removeHollow(top, path);
  for (const path of wanted) mkdirSync(join(top, path), { recursive: true });
}

function removeHollow(top: string, path: string): void {
  try {
    for (let folder = path; folder !== ''; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/'))))
      rmdirSync(join(top, folder));
  } catch {
    // Something is inside, or it is gone already.
  }
}
