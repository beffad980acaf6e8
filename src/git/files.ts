import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';

let written = 0;

/** Returns a unique name next to the file. */
const besideName = (file: string): string =>
  `${file}.${process.pid}.${process.hrtime.bigint()}.${written++}.tmp`;

/** Replaces a file atomically: a reader sees either the old or the new text, never a part. */
export function replaceFile(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  const beside = besideName(file);
  writeFileSync(beside, text);
  renameSync(beside, file);
}

/** Replaces a file like `replaceFile`, and returns when the new text survives a power loss. */
export function recordFile(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  const beside = besideName(file);
  const descriptor = openSync(beside, 'w');
  try {
    writeFileSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameSync(beside, file);
  const folder = openSync(dirname(file), 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** Writes files and folders to the disk. A folder keeps the names in it. Skips what does not exist. */
export async function syncPaths(paths: Iterable<string>): Promise<void> {
  const all = [...new Set(paths)];
  for (let at = 0; at < all.length; at += maxOpen)
    await Promise.all(all.slice(at, at + maxOpen).map(syncPath));
}

const maxOpen = 64;

async function syncPath(path: string): Promise<void> {
  try {
    const handle = await open(path, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    // A link may lead nowhere, a file may be unreadable, and some file systems cannot sync a folder.
    if (
      !isMissing(error) &&
      !['EINVAL', 'EISDIR', 'EACCES', 'ELOOP', 'ENXIO'].some(code => hasCode(error, code))
    )
      throw error;
  }
}

/** Returns `undefined` if the file does not exist or is a folder. */
export function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (isMissing(error) || hasCode(error, 'EISDIR')) return undefined;
    throw error;
  }
}

/** Returns the names in a folder in a stable order. Empty if the folder does not exist. */
export function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** Returns `undefined` if the text is not a JSON object. */
export function parseRecord(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value))
      : undefined;
  } catch {
    return undefined;
  }
}

export const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;

const isMissing = (error: unknown): boolean => hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR');

export function removeIfThere(file: string): void {
  try {
    unlinkSync(file);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}
