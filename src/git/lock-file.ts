import { linkSync, mkdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive, processStart, thisProcess } from '../process/index.ts';
import type { Owner } from '../store/index.ts';
import { besideName, hasCode, namesIn, parseRecord, readIfThere, replaceFile } from './files.ts';

/**
 * A lock is a folder with one file for each time that it was taken, named by its token: 1, 2, 3 and so on. The highest
 * token is the current one. To take the lock is to create the next file, with all its content, by `link`; so two
 * processes that see the same dead owner cannot both take over, and tokens only ever grow.
 */
export type LockState =
  | { readonly kind: 'free'; readonly token: number }
  | { readonly kind: 'held'; readonly token: number; readonly owner: Owner }
  /** Its owner ended without giving it back. */
  | { readonly kind: 'abandoned'; readonly token: number };

const released = '{"released":true}\n';

/**
 * Tokens that are kept behind the current one. Whoever looked that long ago and now creates a file that was removed in
 * the meantime finds a higher token beside it.
 */
const keptTokens = 16;

/** How the lock stands. */
export function readLock(folder: string): LockState {
  const token = currentToken(folder);
  if (token === 0) return { kind: 'free', token };
  const record = parseRecord(readIfThere(join(folder, String(token))));
  if (record?.['released'] === true) return { kind: 'free', token };
  const owner = toOwner(record);
  // A file appears with its whole content. Without one, the machine went down before it reached the disk.
  if (owner === undefined) return { kind: 'abandoned', token };
  return isProvablyDead(owner) ? { kind: 'abandoned', token } : { kind: 'held', token, owner };
}

/** Takes the token after the one that was seen; `false` if somebody else was faster. */
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

/** Whether the token is still the current one and not given back. */
export function holdsToken(folder: string, { token, owner }: { token: number; owner: Owner }): boolean {
  if (currentToken(folder) !== token) return false;
  return toOwner(parseRecord(readIfThere(join(folder, String(token)))))?.incarnation === owner.incarnation;
}

/** Gives the token back. Does nothing if it is not the current one any more. */
export function releaseToken(folder: string, held: { token: number; owner: Owner }): void {
  if (holdsToken(folder, held)) replaceFile(join(folder, String(held.token)), released);
}

/** Tokens up to this one whose owners ended without giving them back, as far as is known. */
export const abandonedTokens = (folder: string, last: number): readonly number[] =>
  tokensIn(folder).filter(token => token <= last && readIfThere(join(folder, String(token))) !== released);

/** Whether nobody can be acting as this owner any more. Of another machine that can never be told. */
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

/** Also what is left of those who were killed while they took one. */
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
