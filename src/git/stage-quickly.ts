import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { doubtfulFiles } from './doubtful-files.ts';
import type { Git } from './git.ts';
import { type IndexEntry, type IndexFile, parseIndex } from './index-file.ts';
import { type GitFolders, type Head, headInFiles } from './ref-files.ts';
import { trustIndex } from './side-index.ts';

export interface QuickStaging {
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
  writeFileSync(beside, bytes);
  trustIndex(beside);
  const side = git.with({ env: { GIT_INDEX_FILE: beside } });
  const { code, stdout } = await side.run(['add', '--all', '--verbose'], { signal });
  if (code !== 0 || stdout === '') return undefined;
  const now = readFileSync(beside);
  const after = parseIndex(now, oidBytes);
  if (after === undefined || hasNewGitlink(before, after)) return undefined;
  const doubtful = doubtfulFiles({
    bytes,
    entries: before.entries.filter(entry => !entry.isAssumedUnchanged && !entry.isSkipped),
    folder: git.cwd,
    written: stat.mtimeNs,
  });
  const noticed = new Map(after.entries.map(entry => [entry.path, notes(now, entry)]));
  const isMissed = (entry: IndexEntry) =>
    entry.path.includes('\uFFFD') || noticed.get(entry.path)?.equals(notes(bytes, entry)) === true;
  return doubtful.some(isMissed) ? undefined : head;
}

const isSpecial = ({ entries, isSplit, isSparse }: IndexFile): boolean =>
  isSplit || isSparse || entries.some(({ isUnmerged }) => isUnmerged);

function hasNewGitlink(before: IndexFile, after: IndexFile): boolean {
  const gitlinks = ({ entries }: IndexFile) =>
    entries.filter(({ isGitlink }) => isGitlink).map(({ path }) => path);
  const known = new Set(gitlinks(before));
  return gitlinks(after).some(path => !known.has(path));
}

/** What an index says about a file: its content and how it was on disk. */
const notes = (bytes: Buffer, { at, flagsAt }: IndexEntry): Buffer => bytes.subarray(at, flagsAt);
