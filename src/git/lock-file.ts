import { linkSync, mkdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive, processStart, thisProcess } from '../process/index.ts';
import type { Owner } from '../store/index.ts';
import { besideName, hasCode, namesIn, parseRecord, readIfThere, replaceFile } from './files.ts';

/**
 * A lock is a folder with one file per acquisition, named by its token: 1, 2, 3 and so on. The highest token is the current
 * one. `link` creates the next file atomically with its content, so two processes that see the same dead owner cannot both
 * take over, and tokens only grow.
 */
export type LockState =
  | { readonly kind: 'free'; readonly token: number }
  | { readonly kind: 'held'; readonly token: number; readonly owner: Owner }
  /** Its owner ended without releasing it. */
  | { readonly kind: 'abandoned'; readonly token: number };

const released = '{"released":true}\n';

/**
 * Number of files kept below the current token. A slow process that recreates a removed file finds a higher token next to
 * it, and gives up.
 */
const keptTokens = 16;

/** Reads the state of a lock. */
export function readLock(folder: string): LockState {
  const token = currentToken(folder);
  if (token === 0) return { kind: 'free', token };
  const record = parseRecord(readIfThere(join(folder, String(token))));
  if (record?.['released'] === true) return { kind: 'free', token };
  const owner = toOwner(record);
  // A file is linked with its complete content. If that is missing, the machine crashed before it reached the disk.
  if (owner === undefined) return { kind: 'abandoned', token };
  return isProvablyDead(owner) ? { kind: 'abandoned', token } : { kind: 'held', token, owner };
}

/** Takes a token. Returns `false` if another process was faster. */
export function takeToken(folder: string, { token, owner }: { token: number; owner: Owner }): boolean {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, String(token));
  const beside = besideName(file);
  writeFileSync(beside, `${JSON.stringify(owner)}\n`);
  try {
    linkSync(beside, file);
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    removeIfThere(beside);
  }
  if (currentToken(folder) > token) {
    removeIfThere(file);
    return false;
  }
  sweep(folder, token - keptTokens);
  return true;
}

/** Whether the token is current and not released. */
export function holdsToken(folder: string, { token, owner }: { token: number; owner: Owner }): boolean {
  if (currentToken(folder) !== token) return false;
  return toOwner(parseRecord(readIfThere(join(folder, String(token)))))?.incarnation === owner.incarnation;
}

/** Releases the token. Does nothing if it is no longer current. */
export function releaseToken(folder: string, held: { token: number; owner: Owner }): void {
  if (holdsToken(folder, held)) replaceFile(join(folder, String(held.token)), released);
}

/** Returns the tokens up to `last` that were not released, as far as their files are kept. */
export const abandonedTokens = (folder: string, last: number): readonly number[] =>
  tokensIn(folder).filter(token => token <= last && readIfThere(join(folder, String(token))) !== released);

/** Whether the process of the owner has certainly ended. Always `false` for another machine. */
export function isProvablyDead(owner: Owner): boolean {
  if (owner.host !== thisProcess().host) return false;
  const start = processStart(owner.pid);
  if (start === undefined || owner.processStart === 'unknown') return start === undefined;
  return !isAlive(owner);
}

export function toOwner(record: Readonly<Record<string, unknown>> | undefined): Owner | undefined {
  const { incarnation, host, pid, processStart } = record ?? {};
  if (typeof incarnation !== 'string' || typeof host !== 'string') return undefined;
  if (typeof pid !== 'number' || typeof processStart !== 'string') return undefined;
  return { incarnation, host, pid, processStart };
}

/** Removes old files, including temporary files of processes that were killed in `takeToken`. */
function sweep(folder: string, last: number): void {
  for (const name of namesIn(folder)) {
    if (/^\d/.test(name) && Number.parseInt(name, 10) <= last) removeIfThere(join(folder, name));
  }
}

const tokensIn = (folder: string): readonly number[] =>
  namesIn(folder).flatMap(name => (/^[1-9]\d*$/.test(name) ? Number(name) : []));

const currentToken = (folder: string): number => Math.max(0, ...tokensIn(folder));

export function removeIfThere(file: string): void {
  try {
    unlinkSync(file);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}
