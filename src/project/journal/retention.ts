import { type Dirent, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const journalsFolder = (stateDir: string): string => join(stateDir, 'journal');

export interface JournalLimits {
  readonly mostRuns: number;
  readonly mostBytes: number;
}

const defaultLimits: JournalLimits = { mostRuns: 20, mostBytes: 500 * 1024 * 1024 };

/** The folders of all journals, oldest first. */
export function journalFolders(stateDir: string): readonly string[] {
  const folder = journalsFolder(stateDir);
  return entriesOf(folder)
    .filter(entry => entry.isDirectory())
    .map(({ name }) => join(folder, name))
    .sort();
}

/**
 * Makes room for one more: the newest runs are kept, as long as they are not too many or too large. A run that was
 * resumed has several journals, and is kept or removed with all of them.
 */
export function removeOldJournals(stateDir: string, limits: JournalLimits = defaultLimits): void {
  const byRun = new Map<string, string[]>();
  for (const folder of journalFolders(stateDir).toReversed()) {
    const run = readIfThere(join(folder, 'run')) ?? folder;
    byRun.set(run, [...(byRun.get(run) ?? []), folder]);
  }
  let bytes = 0;
  for (const [index, folders] of [...byRun.values()].entries()) {
    bytes += folders.reduce((sum, folder) => sum + sizeOf(folder), 0);
    if (index < limits.mostRuns - 1 && bytes <= limits.mostBytes) continue;
    if (folders.some(isBeingWritten)) continue;
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  }
}

/** A worker may be at one task for as long as others take for twenty. */
function isBeingWritten(folder: string): boolean {
  const [, pid] = /Z-(\d+)(?:-\d+)?$/.exec(folder) ?? [];
  if (pid === undefined || existsSync(join(folder, 'size'))) return false;
  try {
    process.kill(Number(pid), 0);
    return true;
  } catch {
    return false;
  }
}

/** Once it is whole, its size is written down, so that nobody has to look at every file of it again. */
export function noteSize(folder: string): void {
  try {
    writeFileSync(join(folder, 'size'), String(bytesBelow(folder)));
  } catch {
    // Then it is looked at again.
  }
}

const sizeOf = (folder: string): number => {
  const noted = Number(readIfThere(join(folder, 'size')) ?? Number.NaN);
  return Number.isFinite(noted) ? noted : bytesBelow(folder);
};

const bytesBelow = (folder: string): number =>
  entriesOf(folder).reduce((sum, entry) => {
    const path = join(folder, entry.name);
    return (
      sum + (entry.isDirectory() ? bytesBelow(path) : (statSync(path, { throwIfNoEntry: false })?.size ?? 0))
    );
  }, 0);

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return undefined;
  }
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}
