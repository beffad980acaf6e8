import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { inflateSync } from 'node:zlib';
import type { Git } from './git.ts';
import type { Repository } from './repository.ts';

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

/** Replaces several files like `recordFile`, in half of the time. After a crash, some of them may be new. */
export async function recordFiles(texts: Readonly<Record<string, string>>): Promise<void> {
  const files = Object.entries(texts).map(([file, text]) => ({ file, text, beside: besideName(file) }));
  for (const { beside, text } of files) writeFileSync(beside, text);
  await syncPaths(files.map(({ beside }) => beside));
  for (const { file, beside } of files) renameSync(beside, file);
  await syncPaths(files.map(({ file }) => dirname(file)));
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

/** Number of loose objects above which one pack is synced instead of each file. */
const maxLoose = 100;

/** Age above which the system has written a file to the disk by itself. */
const recentMs = 60_000;

interface NamedWork {
  /** Commits that an event is going to name, without those that `from` reaches. */
  readonly from: string;
  readonly to: string;
  /** Branch that keeps them. */
  readonly branch?: string | undefined;
  /** Git folder of a worktree whose HEAD or index names them. */
  readonly gitDir?: string | undefined;
}

/**
 * Returns when commits survive a power loss, with all of their objects and the names that lead to them. Git syncs what our
 * own commands write, but not the folders, and nothing of what an agent or the user commits.
 */
export async function makeDurable(
  { git, commonDir }: Pick<Repository, 'git' | 'commonDir'>,
  { from, to, branch, gitDir }: NamedWork,
): Promise<void> {
  const output = await git.ok(['rev-list', '--objects', '--no-object-names', `${from}..${to}`]);
  const objects = join(commonDir, 'objects');
  const ids = output.split('\n').filter(id => id !== '');
  const loose = ids.map(id => join(objects, id.slice(0, 2), id.slice(2))).filter(file => existsSync(file));
  if (loose.length > maxLoose) await packObjects(git, { ids, folder: join(objects, 'pack') });
  const files = loose.length > maxLoose ? [join(objects, 'pack')] : [...loose, ...loose.map(dirname)];
  const names = branch === undefined ? [] : foldersOfRef(commonDir, `refs/heads/${branch}`);
  await syncPaths([...files, objects, ...names, ...(gitDir === undefined ? [] : [gitDir])]);
}

/** Git syncs the pack and its index. Packing the same objects again gives the same files. */
const packObjects = (
  git: Git,
  { ids, folder }: { readonly ids: readonly string[]; readonly folder: string },
) => git.ok(['pack-objects', '--quiet', join(folder, 'pack')], { input: `${ids.join('\n')}\n` });

/** A loose ref with all folders that lead to it. */
function foldersOfRef(commonDir: string, ref: string): readonly string[] {
  const parts = ref.split('/');
  return parts.map((_, index) => join(commonDir, ...parts.slice(0, index + 1)));
}

/** Makes a branch durable that was made for a commit which is durable already. */
export const makeRefDurable = ({ commonDir }: Pick<Repository, 'commonDir'>, ref: string): Promise<void> =>
  syncPaths(foldersOfRef(commonDir, ref));

/**
 * Makes durable what was committed a moment ago. Git syncs no object of the user's commits; the next sync of our own files
 * could otherwise write the branch to the disk before the commit that it names.
 */
export async function makeRecentDurable(
  { commonDir }: Pick<Repository, 'commonDir'>,
  ref?: string,
): Promise<void> {
  const objects = join(commonDir, 'objects');
  const now = Date.now();
  const folders = changedIn(objects, now).filter(({ name }) => /^[0-9a-f]{2}$/.test(name));
  if (folders.length === 0) return;
  const added = folders.filter(({ path, mtimeMs }) => durableFolders.get(path) !== mtimeMs);
  await syncPaths(added.flatMap(({ path }) => changedIn(path, now).map(file => file.path)));
  const parents = added.length === 0 ? [] : [...added.map(({ path }) => path), objects];
  await syncPaths([...parents, ...(ref === undefined ? [] : foldersOfRef(commonDir, ref))]);
  // What is added to a folder in the same moment in which it was read may not change its time.
  for (const { path, mtimeMs } of added) if (now - mtimeMs > momentMs) durableFolders.set(path, mtimeMs);
}

const momentMs = 100;

/** Folders of objects that this process has synced, with the time of their last change. */
const durableFolders = new Map<string, number>();

/** Lists what is in a folder and has changed recently. */
const changedIn = (folder: string, now: number) =>
  namesIn(folder).flatMap(name => {
    const path = join(folder, name);
    const { mtimeMs = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {};
    return Math.abs(now - mtimeMs) < recentMs ? { name, path, mtimeMs } : [];
  });

/** Reads an object that has a file of its own, with one character per byte. */
export function readLooseObject(
  commonDir: string,
  { kind, id }: { readonly kind: 'commit'; readonly id: string },
): string | undefined {
  const file = join(commonDir, 'objects', id.slice(0, 2), id.slice(2));
  if (!existsSync(file)) return undefined;
  try {
    const text = inflateSync(readFileSync(file)).toString('latin1');
    return text.startsWith(`${kind} `) ? text.slice(text.indexOf('\0') + 1) : undefined;
  } catch {
    // Git explains what is wrong with a broken object.
    return undefined;
  }
}

/**
 * Removes objects that a power loss left empty. Git takes an empty file for the object, and would not write it again. No
 * command leaves an empty file under the name of an object.
 */
export function removeEmptyObjects({ commonDir }: Pick<Repository, 'commonDir'>): void {
  const objects = join(commonDir, 'objects');
  for (const name of namesIn(objects).filter(each => /^[0-9a-f]{2}$/.test(each))) {
    const files = namesIn(join(objects, name)).filter(each => /^[0-9a-f]{38,}$/.test(each));
    for (const file of files.map(each => join(objects, name, each)))
      if (statSync(file, { throwIfNoEntry: false })?.size === 0) rmSync(file, { force: true });
  }
}
