import { createHash } from 'node:crypto';
import { type BigIntStats, lstatSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { type IndexEntry, type NotedFile, notedFile, notedSecond } from './fast/index-file.ts';

export interface IndexInDoubt {
  readonly bytes: Buffer;
  readonly entries: readonly IndexEntry[];
  readonly folder: string;
  /** When the index was written, in nanoseconds. */
  readonly written: bigint;
}

/**
 * Git tells times apart by the second. Files that were written in the second of the index it reads again, each time, and
 * after a checkout that is all of them. Here they are told apart by the nanosecond, and only those are read that were
 * written in the same tick of the clock. Gives the files that have changed, or may have.
 */
export function doubtfulFiles({ bytes, entries, folder, written }: IndexInDoubt): readonly IndexEntry[] {
  const second = Number(written / 1_000_000_000n);
  return entries.filter(entry => {
    if (entry.isGitlink || notedSecond(bytes, entry) < second) return false;
    const path = join(folder, entry.path);
    const stat = statIfThere(path);
    const noted = notedFile(bytes, entry);
    if (stat === undefined || !isAsNoted(stat, noted)) return true;
    return noted.modified >= written && !hasContent(path, stat, noted);
  });
}

function statIfThere(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true });
  } catch {
    return undefined;
  }
}

const isAsNoted = (stat: BigIntStats, noted: NotedFile): boolean =>
  stat.mtimeNs === noted.modified &&
  stat.ctimeNs === noted.changed &&
  (stat.size & 0xffff_ffffn) === BigInt(noted.size);

function hasContent(path: string, stat: BigIntStats, { id, mode }: NotedFile): boolean {
  try {
    const isLink = stat.isSymbolicLink();
    const isRun = (stat.mode & 0o100n) !== 0n;
    const modeNow = isLink ? 0o120000 : isRun ? 0o100755 : 0o100644;
    const content = isLink ? readlinkSync(path, 'buffer') : readFileSync(path);
    const hash = createHash(id.length === 40 ? 'sha1' : 'sha256');
    return modeNow === mode && hash.update(`blob ${content.length}\0`).update(content).digest('hex') === id;
  } catch {
    // Git will say what is wrong with it.
    return false;
  }
}
