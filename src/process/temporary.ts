import { createHash } from 'node:crypto';
import { type Dirent, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { processStart, thisProcess } from './table.ts';

/**
 * Creates a folder for temporary files. Its name identifies this process, so that `removeLeftovers` of a later process
 * removes it if this one is killed.
 */
export function temporaryFolder(kind: string, within = tmpdir()): string {
  mkdirSync(within, { recursive: true });
  return mkdtempSync(join(within, `reprise-${kind}-${ownMark()}-`));
}

let own: string | undefined;

function ownMark(): string {
  if (own === undefined) {
    const { host, pid, processStart } = thisProcess();
    own = `${short(host)}.${pid}.${short(processStart)}`;
  }
  return own;
}

const short = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8);

const longestLifeMs = 24 * 60 * 60_000;

/**
 * Removes temporary folders whose process has ended, and returns their number. A process on another machine or in another
 * container cannot be checked: its folders are removed after a day.
 */
export function removeLeftovers(within = tmpdir()): number {
  const leftovers = foldersIn(within).filter(name => isLeftover(within, name));
  for (const name of leftovers) {
    try {
      rmSync(join(within, name), { recursive: true, force: true });
    } catch {
      // The folder belongs to another user, or another process is removing it.
    }
  }
  return leftovers.length;
}

function isLeftover(within: string, name: string): boolean {
  const [, host, pid, started] = /^reprise-[a-z]+-([0-9a-f]{8})\.(\d+)\.([0-9a-f]{8})-\w+$/.exec(name) ?? [];
  if (host === undefined || started === undefined) return false;
  if (host !== short(thisProcess().host)) return ageOf(join(within, name)) > longestLifeMs;
  const start = processStart(Number(pid));
  return start === undefined || short(start) !== started;
}

const ageOf = (path: string): number => {
  const made = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  return made === undefined ? 0 : Date.now() - made;
};

function foldersIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry: Dirent) => entry.isDirectory() && entry.name.startsWith('reprise-'))
      .map(({ name }) => name);
  } catch {
    return [];
  }
}
