import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

/** Text of files, by path relative to a folder. */
export type Files = ReadonlyMap<string, string>;

/**
 * Writes `files` into a folder and removes all its other files with that ending. A file with the same text is not
 * touched. A changed file is replaced atomically, because a process may be loading it.
 */
export function replaceFiles(folder: string, ending: string, files: Files): void {
  for (const [file, text] of files) {
    const path = join(folder, file);
    if (existsSync(path) && readFileSync(path, 'utf8') === text) continue;
    mkdirSync(dirname(path), { recursive: true });
    const draft = `${path}.${process.pid}`;
    writeFileSync(draft, text);
    renameSync(draft, path);
  }
  for (const file of filesIn(folder)) {
    if (!file.endsWith(ending) || files.has(file)) continue;
    rmSync(join(folder, file), { force: true });
    removeEmptyFolders(folder, dirname(file));
  }
}

const filesIn = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(folder.length + 1));

function removeEmptyFolders(root: string, folder: string): void {
  for (let at = folder; at !== '.' && readdirSync(join(root, at)).length === 0; at = dirname(at))
    rmdirSync(join(root, at));
}
