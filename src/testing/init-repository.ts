import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Git } from '../git/git.ts';

/** A folder or a file below `.git`. */
interface Part {
  readonly path: string;
  readonly content: Buffer | undefined;
}

const made = new Map<string | undefined, readonly Part[]>();

/**
 * An empty repository on `main`. One git makes the same each time: only the first stage of a process asks for it, the
 * others get a copy. Throws GIT_FAILED.
 */
export async function initRepository(git: Git, searchPath: string | undefined): Promise<void> {
  const folder = join(git.cwd, '.git');
  const known = made.get(searchPath);
  if (known) {
    copyTo(folder, known);
    return;
  }
  await git.ok(['init', '--quiet', '--initial-branch=main', '--template=']);
  made.set(searchPath, partsOf(folder));
}

const partsOf = (folder: string): readonly Part[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).map(entry => {
    const file = join(entry.parentPath, entry.name);
    return { path: file.slice(folder.length + 1), content: entry.isFile() ? readFileSync(file) : undefined };
  });

function copyTo(folder: string, parts: readonly Part[]): void {
  mkdirSync(folder);
  for (const { path, content } of parts) {
    if (content === undefined) mkdirSync(join(folder, path), { recursive: true });
    else writeFileSync(join(folder, path), content);
  }
}
