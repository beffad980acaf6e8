import { createHash } from 'node:crypto';
import {
  type BigIntStats,
  copyFileSync,
  lstatSync,
  readFileSync,
  readlinkSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasCode } from '../files.ts';
import type { Git } from '../git.ts';
import { type GitFolders, type Head, headInFiles } from '../refs.ts';
import {
  editIndex,
  type IndexEntry,
  type IndexFile,
  type NotedFile,
  notedFile,
  notedSecond,
  parseIndex,
} from './index-file.ts';

interface QuickStaging {
  /** At the top of the worktree. */
  readonly git: Git;
  readonly folders: GitFolders;
  readonly index: string;
  /** Where the index goes that holds everything. */
  readonly beside: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Stages everything beside the index with one process that does not read again what was just checked out. Gives what is
 * checked out; `undefined` if there is nothing to stage, or anything about it has to be looked at more closely.
 */
export async function stageQuickly(staging: QuickStaging): Promise<Head | undefined> {
  const { git, folders, index, beside, signal } = staging;
  const head = headInFiles(folders);
  const stat = statSync(index, { bigint: true, throwIfNoEntry: false });
  if (head === undefined || stat === undefined) return undefined;
  const oidBytes = head.commit.length / 2;
  const bytes = readFileSync(index);
  const before = parseIndex(bytes, oidBytes);
  if (before === undefined || isSpecial(before)) return undefined;
  const seen = before.entries.filter(entry => !entry.isAssumedUnchanged && !entry.isSkipped);
  const changed = racyFiles({ bytes, entries: seen, folder: git.cwd, written: stat.mtimeNs });
  writeFileSync(beside, editIndex(bytes, { show: [], forget: changed }, oidBytes));
  trustIndex(beside);
  const side = git.with({ env: { GIT_INDEX_FILE: beside } });
  const { code, stdout } = await side.run(['add', '--all', '--verbose'], { signal });
  if (code !== 0 || stdout === '') return undefined;
  const after = parseIndex(readFileSync(beside), oidBytes);
  if (after === undefined || hasNewGitlink(before, after)) return undefined;
  // As old as it was: whoever looks next reads again what something may have changed since we looked.
  setAge(beside, Number(stat.mtimeMs));
  return head;
}

const isSpecial = ({ entries, isSplit, isSparse }: IndexFile): boolean =>
  isSplit || isSparse || entries.some(({ isUnmerged }) => isUnmerged);

function hasNewGitlink(before: IndexFile, after: IndexFile): boolean {
  const gitlinks = ({ entries }: IndexFile) =>
    entries.filter(({ isGitlink }) => isGitlink).map(({ path }) => path);
  const known = new Set(gitlinks(before));
  return gitlinks(after).some(path => !known.has(path));
}

interface RacyIndex {
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
export function racyFiles({ bytes, entries, folder, written }: RacyIndex): readonly IndexEntry[] {
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

/** Runs the body with a git that has a copy of the index, so that nothing done to it is seen in the worktree. */
export async function withScratchIndex<T>(git: Git, body: (side: Git) => Promise<T>): Promise<T> {
  const index = await git.line(['rev-parse', '--path-format=absolute', '--git-path', 'index']);
  const folder = await mkdtemp(join(tmpdir(), 'reprise-index-'));
  const copy = join(folder, 'index');
  try {
    copyIndex(index, copy);
    return await body(git.with({ env: { GIT_INDEX_FILE: copy } }));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * The copy is as old as the index. Git reads a file again only if the index is not younger than its entry; in a copy that
 * looks younger, a change would be missed that came in the second of the checkout and left the size as it was.
 */
export function copyIndex(index: string, copy: string): void {
  try {
    const { mtimeMs } = statSync(index);
    copyFileSync(index, copy);
    setAge(copy, mtimeMs);
  } catch (error) {
    // Before the first `git add` there is none.
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}

/**
 * Git takes what an index says about a file for granted if the index is younger than the file: it reads none again. Only
 * where the content is taken from the index, or files are compared in another way.
 */
export const trustIndex = (index: string): void => setAge(index, Date.now() + 60_000);

/** In whole seconds, as most builds of git compare them, and rather too old than too young. */
export function setAge(file: string, mtimeMs: number): void {
  const seconds = Math.floor(mtimeMs / 1000);
  utimesSync(file, seconds, seconds);
}

/** Untracked files that git does not ignore. Names that end with a slash are repositories of their own. */
export async function untrackedFiles(git: Git): Promise<readonly string[]> {
  const output = await git.ok(['ls-files', '-z', '--others', '--exclude-standard'], { encoding: 'bytes' });
  return output.split('\0').filter(name => name !== '');
}
