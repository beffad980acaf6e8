import { type Dirent, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const journalsFolder = (stateDir: string): string => join(stateDir, 'journal');

export interface JournalLimits {
  readonly mostRuns: number;
  readonly mostBytes: number;
}

const defaultLimits: JournalLimits = { mostRuns: 20, mostBytes: 500 * 1024 * 1024 };

/** Returns the folders of all journals, oldest first. */
export function journalFolders(stateDir: string): readonly string[] {
  const folder = journalsFolder(stateDir);
  return entriesOf(folder)
    .filter(entry => entry.isDirectory())
    .map(({ name }) => join(folder, name))
    .sort();
}

/**
 * Makes room for one more run. Keeps the newest runs within the limits. A resumed run has several journals, which are
 * kept or removed together.
 */
export function removeOldJournals(stateDir: string, limits: JournalLimits = defaultLimits): void {
  const byRun = new Map<string, string[]>();
  for (const folder of journalFolders(stateDir).toReversed()) {
    const run = readIfExists(join(folder, 'run')) ?? folder;
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

/** Protects the journal of a long task: other workers may finish more runs meanwhile than the limit allows. */
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

/** Writes down the size of a finished journal, so that its files need not be counted again. */
export function noteSize(folder: string): void {
  try {
    writeFileSync(join(folder, 'size'), String(bytesBelow(folder)));
  } catch {
    // The size is then computed again.
  }
}

const sizeOf = (folder: string): number => {
  const noted = Number(readIfExists(join(folder, 'size')) ?? Number.NaN);
  return Number.isFinite(noted) ? noted : bytesBelow(folder);
};

const bytesBelow = (folder: string): number =>
  entriesOf(folder).reduce((sum, entry) => {
    const path = join(folder, entry.name);
    return (
      sum + (entry.isDirectory() ? bytesBelow(path) : (statSync(path, { throwIfNoEntry: false })?.size ?? 0))
    );
  }, 0);

function readIfExists(file: string): string | undefined {
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
